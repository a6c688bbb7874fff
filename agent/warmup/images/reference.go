package images

import "strings"

// normal is a reference as the runtime names it: with registry, and with a tag or a digest;
// a tag beside a digest counts for nothing.
func normal(reference string) string {
	name, digest, pinned := strings.Cut(reference, "@")
	host, rest, found := strings.Cut(name, "/")
	if !found || !strings.ContainsAny(host, ".:") && host != "localhost" && host == strings.ToLower(host) {
		host, rest = "docker.io", name
	}
	if host == "index.docker.io" {
		host = "docker.io"
	}
	if host == "docker.io" && !strings.Contains(rest, "/") {
		rest = "library/" + rest
	}
	repository, tag := rest, "latest"
	if i := strings.LastIndexByte(rest, ':'); i >= 0 {
		repository, tag = rest[:i], rest[i+1:]
	}
	if pinned {
		return host + "/" + repository + "@" + digest
	}
	return host + "/" + repository + ":" + tag
}

// repository of a normal reference, without tag and digest.
func repository(reference string) string {
	name, _, _ := strings.Cut(reference, "@")
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		return name[:i]
	}
	return name
}

// registry of a normal reference.
func registry(reference string) string {
	host, _, _ := strings.Cut(reference, "/")
	return host
}
