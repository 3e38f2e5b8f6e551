// Package toolconf makes copies of configurations of package managers that are shown in a sandbox: registries, proxies
// and certificates, without passwords and tokens. What is shown is listed by key, and its value has to look like what
// such a key holds; everything else is left out, and a file that is not understood whole is not shown at all. It reads
// text and knows nothing of where files are. Package input calls it.
package toolconf
