package gather

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/api/v1alpha1"
)

var one = resource.MustParse("1")

func kubeconfig(server string) string {
	return `{"apiVersion":"v1","kind":"Config","current-context":"x","contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"clusters":[{"name":"c","cluster":{"server":"` + server + `"}}],"users":[{"name":"u","user":{"token":"t"}}]}`
}

// addEviction switches kubelet's thresholds off where a test has written a configuration
// without any.
func (n *node) addEviction() {
	path := filepath.Join(n.Root, defaultConfig)
	data, err := os.ReadFile(path)
	if err == nil && !strings.Contains(string(data), "evictionHard") && !strings.Contains(string(data), "[") {
		n.write(defaultConfig, string(data)+"\nevictionHard: {nodefs.available: 0%}\n")
	}
}

func TestVolatilePaths(t *testing.T) {
	n := newNode(t)
	n.write("/proc/self/mountinfo", "1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 0:1 / /run rw - tmpfs tmpfs rw\n3 1 0:2 / /dev rw - tmpfs tmpfs rw\n4 3 0:3 / /dev/shm rw - tmpfs tmpfs rw\n")
	n.write("/usr/lib/tmpfiles.d/a.conf", "d /run/made 0755 root root -\nL /var/run - - - - ../run\n")
	n.write("/usr/lib/systemd/system/a.service", "[Service]\nRuntimeDirectory=daemon\n")
	n.mounts.read(n.Root)
	for path, want := range map[string]bool{
		"/run/app": true, "/var/run/app/s": true, "/dev/shm/a": true,
		"/srv": false, "/run": false, "/run/made": false, "/run/made/in": false, "/run/daemon/socket": false,
		"/run/containerd/containerd.sock": false, "/var/run/dbus/system_bus_socket": false, "/dev/fuse": false, "/dev/shm": false, "/run/maden": true,
	} {
		if got := n.volatile(path); got != want {
			t.Errorf("%s: volatile %t, want %t", path, got, want)
		}
	}
}

func TestLateMounts(t *testing.T) {
	n := newNode(t)
	n.write("/proc/self/mountinfo", "1 0 8:1 / / rw - ext4 /dev/sda rw\n"+
		"2 1 8:2 / /data rw - ext4 /dev/sdb rw\n3 1 8:3 / /maybe rw - xfs /dev/sdc rw\n4 1 8:4 / /by\\040hand rw - ext4 /dev/sdd rw\n5 1 8:5 / /unit/a rw - ext4 /dev/sde rw\n6 1 8:6 / /asked rw - ext4 /dev/sdf rw\n")
	n.write("/etc/fstab", "# comment\n/dev/sdb /data ext4 defaults 0 2\n/dev/sdc /maybe xfs nofail 0 2\n/dev/sdf /asked ext4 noauto 0 2\n")
	n.write("/etc/systemd/system/unit-a.mount", "")
	n.mounts.read(n.Root)
	for path, want := range map[string]struct{ late, never bool }{"/data/x": {}, "/maybe/x": {late: true}, "/by hand": {true, true}, "/asked": {true, true}, "/unit/a/x": {}, "/etc": {}} {
		if late, never := n.mounts.late(path), n.mounts.never(path); late != want.late || never != want.never {
			t.Errorf("%s: late %t, never %t, want %+v", path, late, never, want)
		}
	}
}

func TestRoom(t *testing.T) {
	const gib = 1 << 30
	cases := map[string]struct {
		room          room
		was           bool
		short, little bool
	}{
		"half is free":                      {room: room{free: 5 * gib, total: 10 * gib, least: leastBytes, threshold: "10%"}},
		"near the threshold":                {room: room{free: gib + gib/10, total: 10 * gib, least: leastBytes, threshold: "10%"}, little: true},
		"below a threshold in parts":        {room: room{free: gib - 1, total: 10 * gib, least: leastBytes, threshold: "10%"}, short: true, little: true},
		"below a threshold in bytes":        {room: room{free: gib - 1, total: 100 * gib, least: leastBytes, threshold: "1Gi"}, short: true, little: true},
		"less than a start takes":           {room: room{free: leastBytes - 1, total: 100 * gib, least: leastBytes}, short: true, little: true},
		"just above, and was not short":     {room: room{free: gib + 1, total: 10 * gib, threshold: "10%"}, little: true},
		"just above, and was short":         {room: room{free: gib + 1, total: 10 * gib, threshold: "10%"}, was: true, short: true, little: true},
		"a file system that has no inodes":  {room: room{threshold: "5%", least: leastInodes}},
		"a disk smaller than a start takes": {room: room{free: 16 << 20, total: 32 << 20, least: leastBytes}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if short, little := tc.room.short(tc.was); short != tc.short || little != tc.little {
				t.Errorf("short %t little %t, want %t %t", short, little, tc.short, tc.little)
			}
		})
	}
}

func TestWhichImagesKubeletAsksTheRegistryFor(t *testing.T) {
	const record = `{"imageRef":"sha256:web","credentialMapping":{"registry:5000/web":%}}`
	withSecret := strings.ReplaceAll(record, "%", `{"kubernetesSecrets":[{"uid":"s","namespace":"shop","name":"pull","credentialHash":"h"}]}`)
	cases := map[string]struct {
		policy, record, intent string
		noSecret               bool
		want                   bool
	}{
		"an image that kubelet did not pull":             {},
		"an image that anybody may use":                  {record: strings.ReplaceAll(record, "%", `{"nodePodsAccessible":true}`)},
		"an image that was pulled with the pod's secret": {record: withSecret},
		"an image that was pulled with another secret":   {record: withSecret, noSecret: true, want: true},
		"nobody verifies":                                {policy: "NeverVerify", record: withSecret, noSecret: true},
		"all are verified, and kubelet did not pull":     {policy: "AlwaysVerify", want: true},
		"a pull that a power cut ended":                  {intent: `{"image":"registry:5000/web:1"}`, want: true},
		"a record of another name":                       {record: strings.ReplaceAll(withSecret, "5000/web", "5000/other"), want: true},
		"an account that may":                            {record: strings.ReplaceAll(record, "%", `{"kubernetesServiceAccounts":[{"namespace":"shop","name":"a"}]}`)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := pod("web", func(spec *corev1.PodSpec) { spec.ServiceAccountName = "a" })
			n := newNode(t, p)
			if !tc.noSecret {
				p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}}
				n.sync(scope("secrets", "pull"), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pull", UID: "s"}})
			}
			n.write("/var/lib/kubelet/image_manager/pulled/.keep", "")
			if tc.record != "" {
				n.write("/var/lib/kubelet/image_manager/pulled/a", tc.record)
			}
			if tc.intent != "" {
				n.write("/var/lib/kubelet/image_manager/pulling/a", tc.intent)
			}
			c := n.credentials(kubeletFacts{root: "/var/lib/kubelet", config: kubeletConfig{ImagePullCredentialsVerificationPolicy: tc.policy}})
			if got := c.refuse(n.Objects, p, "registry:5000/web:1", "sha256:web"); got != tc.want {
				t.Errorf("refused %t, want %t", got, tc.want)
			}
		})
	}
}

func TestWhoMendsAServingCertificate(t *testing.T) {
	for name, tc := range map[string]struct {
		installed bool
		reason    string
		want      bool
	}{
		"an agent that is installed": {true, v1alpha1.ReasonKubeletServed, true},
		"an agent that observes":     {true, v1alpha1.ReasonObserveOnly, false},
		"nobody":                     {false, v1alpha1.ReasonNotInstalled, false},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.write("/var/lib/kubelet/pki/kubelet.crt", "")
			n.write("/var/lib/kubelet/pki/kubelet.key", "")
			n.Serving = func() metav1.Condition { return metav1.Condition{Status: metav1.ConditionTrue, Reason: tc.reason} }
			if tc.installed {
				n.Files = func() ([]string, error) { return nil, nil }
			}
			if broken := n.Facts(t.Context()).Node.Broken; len(broken) != 1 || broken[0].Mended != tc.want {
				t.Errorf("broken %+v", broken)
			}
		})
	}
}
