# Says what the machines of "make vm" take, before anything is downloaded or booted. That some of it is not to be had is said by the tests.
set -u
cache=${SBX_VM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sbx-vm}
echo "make vm boots almost thirty virtual machines, one after the other. Each takes 2 GiB of memory, two processors, and up to 1 GiB below ${TMPDIR:-/tmp}."
if ls "$cache" 2>/dev/null | grep -q .; then
	echo "kernels: in $cache ($(du -sh "$cache" 2>/dev/null | cut -f1)); what is not there is downloaded from a Debian mirror"
else
	echo "kernels: downloaded from a Debian mirror into $cache (about 250 MB, 1 GB unpacked; SBX_VM_MIRROR and SBX_VM_CACHE name others)"
fi
if [ ! -e /dev/kvm ]; then
	echo "KVM: there is no /dev/kvm, so all is emulated: one to three minutes a machine, about an hour"
elif [ ! -r /dev/kvm ] || [ ! -w /dev/kvm ]; then
	echo "KVM: /dev/kvm is not open to you, so all is emulated: about an hour (as a member of the group kvm it may be minutes)"
else
	echo "KVM: /dev/kvm is there; where it boots no kernel (nested, say) all is emulated: about an hour"
fi
echo "One alone: SBX_VM=full go test ./selftest/vm -run Machines/Limits -v; all are in docs/virtual-machines.md"
