package seatbelt

// base is what every program needs, whatever it is shown. Names of system calls' interfaces only: nothing of it reads
// a file of the person's, names another process, or starts one outside (launchd, Apple events and the keychain are
// reached by none of these services).
const base = `(version 1)
(deny default)
; these are let pass where nobody says otherwise
(deny nvram*)
(deny process-info*)
(deny file-map-executable)

; programs of the same sandbox
(allow process-fork)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))

; numbers of the machine and the system; kern.proc and kern.procargs2 are those of other programs
(allow sysctl-read
    (sysctl-name-prefix "hw.")
    (sysctl-name-prefix "machdep.cpu.")
    (sysctl-name "security.mac.lockdown_mode_state")
    (sysctl-name "kern.argmax")
    (sysctl-name "kern.clockrate")
    (sysctl-name "kern.hostname")
    (sysctl-name "kern.iossupportversion")
    (sysctl-name "kern.maxfilesperproc")
    (sysctl-name "kern.maxproc")
    (sysctl-name "kern.ngroups")
    (sysctl-name "kern.osproductversion")
    (sysctl-name "kern.osrelease")
    (sysctl-name "kern.ostype")
    (sysctl-name "kern.osvariant_status")
    (sysctl-name "kern.osversion")
    (sysctl-name "kern.secure_kernel")
    (sysctl-name "kern.usrstack64")
    (sysctl-name "kern.version")
    (sysctl-name "kern.willshutdown")
    (sysctl-name "sysctl.proc_cputype")
    (sysctl-name "vm.loadavg")
    (sysctl-name "vm.pagesize"))

; users and groups by name, notifications, words for the log
(allow mach-lookup
    (global-name "com.apple.system.opendirectoryd.libinfo")
    (global-name "com.apple.system.opendirectoryd.membership")
    (global-name "com.apple.system.notification_center")
    (global-name "com.apple.system.logger")
    (global-name "com.apple.logd"))
(allow ipc-posix-sem)
(allow ipc-posix-shm-read-data
    (ipc-posix-name "apple.shm.notification_center"))

; the way to everything; no listing but that of the root, whose names are the same on every Mac
(allow file-read*
    (literal "/"))

; what is shown
`

// devices come after what is shown: a tree that is read may hold /dev.
const devices = `
; links that are the same on every Mac
(allow file-read-metadata
    (literal "/etc")
    (literal "/tmp")
    (literal "/var")
    (literal "/private")
    (literal "/private/etc")
    (literal "/private/tmp")
    (literal "/private/var"))
; devices: no terminal but by a descriptor, and no disk
(deny file-read* file-write* file-ioctl process-exec* file-map-executable
    (subpath "/dev"))
(allow file-read-metadata
    (literal "/dev"))
(allow file-read* file-write-data
    (literal "/dev/null")
    (literal "/dev/zero"))
(allow file-read*
    (literal "/dev/random")
    (literal "/dev/urandom")
    (literal "/dev/autofs_nowait"))
(allow file-read* file-write-data file-ioctl
    (literal "/dev/dtracehelper"))
(allow file-read* file-write-data
    (subpath "/dev/fd")
    (literal "/dev/stdin")
    (literal "/dev/stdout")
    (literal "/dev/stderr")
    (literal "/dev/tty"))
(allow pseudo-tty)
(allow file-read* file-write* file-ioctl
    (literal "/dev/ptmx"))
(allow file-read* file-write* file-ioctl
    (require-all
        (regex #"^/dev/ttys[0-9]+$")
        (extension "com.apple.sandbox.pty")))
`

// last takes back what a tree that is shown may hold: a second name of every file (firmlinks), and what would outlive
// the sandbox's rules.
const last = `
; the same files under the other name of the volume
(deny file-read* file-write* process-exec* file-map-executable
    (subpath "/System/Volumes/Data"))
(deny file-write-setugid)
`

// network lets programs out, and to names. What is on this host stays closed: its services act with the person's
// rights.
const network = `
; every host but this one
(allow system-socket)
(allow network-outbound
    (remote ip))
(deny network-outbound
    (remote ip "localhost:*"))
(allow network-outbound
    (literal "/private/var/run/mDNSResponder"))
(allow sysctl-read
    (sysctl-name-prefix "net.routetable."))
(allow mach-lookup
    (global-name "com.apple.SystemConfiguration.configd")
    (global-name "com.apple.SystemConfiguration.DNSConfiguration")
    (global-name "com.apple.networkd")
    (global-name "com.apple.trustd")
    (global-name "com.apple.trustd.agent"))
`
