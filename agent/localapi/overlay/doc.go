// Package overlay keeps what kubelet writes while the API server is out of reach, and hands
// it over when it is back.
//
// What is kept is a whole status, as kubelet last wanted it. It is served in place of the
// snapshot's, and is on the disk before anybody sees it. Handing over compares the parts of
// it that kubelet owns with the live object, and writes the difference on the condition
// that nobody else writes meanwhile: nothing that the cloud decided is undone.
package overlay
