package edgenode

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Names of the logs in Boot.Logs.
const (
	kubeletLog    = "kubelet.log"
	containerdLog = "containerd.log"
)

// A Witness is what kubelet's and containerd's own logs say about one boot. None
// of it comes from the product's code. Times are wall clock; see Boot.Since.
type Witness struct {
	// KubeletStarts are the first log lines of each kubelet process, in order.
	KubeletStarts []time.Time
	// Ready has, for each pod ("namespace/name"), when readiness probes turned to ready.
	Ready map[string][]time.Time
	// Sandboxes are the pod sandboxes that containerd finished, in order.
	Sandboxes []Sandbox
}

// A Sandbox is one RunPodSandbox that returned.
type Sandbox struct {
	Pod, UID, ID string
	Returned     time.Time
}

// FirstReady is when the pod first turned ready; false if it never did.
func (w *Witness) FirstReady(pod string) (time.Time, bool) {
	if times := w.Ready[pod]; len(times) > 0 {
		return times[0], true
	}
	return time.Time{}, false
}

// Witness reads the boot's logs as they are now; a log that does not exist yet is empty.
func (b *Boot) Witness() (*Witness, error) {
	w := &Witness{Ready: map[string][]time.Time{}}
	for name, read := range map[string]func(io.Reader) error{
		kubeletLog:    func(r io.Reader) error { return w.readKubelet(r, b.Zero.UTC().Year()) },
		containerdLog: w.readContainerd,
	} {
		file, err := os.Open(filepath.Join(b.Logs, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		err = read(file)
		file.Close()
		if err != nil {
			return nil, err
		}
	}
	return w, nil
}

var (
	klogLine  = regexp.MustCompile(`^[IWEF](\d{4} \d\d:\d\d:\d\d\.\d{6}) +(\d+) `)
	readyLine = regexp.MustCompile(`"SyncLoop \(probe\)" probe="readiness" status="ready" pod="([^"]+)"`)
	// The protobuf text format puts one space or two between its fields, at random.
	sandboxed = regexp.MustCompile(`^time="([^"]+)" .*RunPodSandbox for name:\\"([^"]*)\\" +uid:\\"([^"]*)\\" +namespace:\\"([^"]*)\\".* returns sandbox id \\"([0-9a-f]+)\\"`)
)

// readKubelet reads klog lines, which carry neither a year nor a zone: the node has UTC.
func (w *Witness) readKubelet(log io.Reader, year int) error {
	process := ""
	return eachLine(log, func(line string) {
		head := klogLine.FindStringSubmatch(line)
		if head == nil {
			return
		}
		at, err := time.Parse("20060102 15:04:05.000000", time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC).Format("2006")+head[1])
		if err != nil {
			return
		}
		if head[2] != process {
			process = head[2]
			w.KubeletStarts = append(w.KubeletStarts, at)
		}
		if pod := readyLine.FindStringSubmatch(line); pod != nil {
			w.Ready[pod[1]] = append(w.Ready[pod[1]], at)
		}
	})
}

func (w *Witness) readContainerd(log io.Reader) error {
	return eachLine(log, func(line string) {
		m := sandboxed.FindStringSubmatch(line)
		if m == nil {
			return
		}
		if at, err := time.Parse(time.RFC3339Nano, m[1]); err == nil {
			w.Sandboxes = append(w.Sandboxes, Sandbox{Pod: m[4] + "/" + m[2], UID: m[3], ID: m[5], Returned: at})
		}
	})
}

// eachLine leaves out a last line that is still being written.
func eachLine(r io.Reader, do func(string)) error {
	reader := bufio.NewReader(r)
	for {
		line, err := reader.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		do(strings.TrimSuffix(line, "\n"))
	}
}
