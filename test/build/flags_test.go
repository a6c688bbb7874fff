// Package build checks what no compiler sees: that the container images are built as the
// binaries are.
package build

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The Dockerfile is not built where the tests run, so its flags are compared instead.
func TestTheDockerfileBuildsAsTheMakefileDoes(t *testing.T) {
	makefile, dockerfile := read(t, "../../Makefile"), read(t, "../../Dockerfile")

	flags := regexp.MustCompile(`(?m)^BUILD_FLAGS := (.+)$`).FindStringSubmatch(makefile)
	if flags == nil {
		t.Fatal("Makefile: no BUILD_FLAGS")
	}
	want := strings.ReplaceAll(flags[1], "$(VERSION)", "${VERSION}")

	builds := regexp.MustCompile(`(?m)^RUN go build (.+) -o /out/(\S+) (\S+)$`).FindAllStringSubmatch(dockerfile, -1)
	var binaries []string
	for _, b := range builds {
		if b[1] != want {
			t.Errorf("Dockerfile builds %s with %q, the Makefile with %q", b[2], b[1], want)
		}
		binaries = append(binaries, b[2]+" "+b[3])
	}
	if got, want := binaries, []string{"rekindle-manager .", "rekindle-agent ./agent"}; !slices.Equal(got, want) {
		t.Errorf("Dockerfile builds %q, want %q", got, want)
	}
	for _, s := range []string{"CGO_ENABLED=0", "USER 65532:65532"} {
		if !strings.Contains(dockerfile, s) {
			t.Errorf("Dockerfile: no %s", s)
		}
	}
	version := regexp.MustCompile(`(?m)^VERSION +\?= (\S+)$`).FindStringSubmatch(makefile)
	if version == nil || !strings.Contains(dockerfile, "VERSION="+version[1]) {
		t.Errorf("Dockerfile: default VERSION is not the Makefile's %v", version)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
