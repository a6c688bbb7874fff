package readiness

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"rekindle.edge/api/v1alpha1"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// told are findings in short: severity, reason, pod, object.
func told(found []v1alpha1.Finding) []string {
	var lines []string
	for _, f := range found {
		lines = append(lines, strings.Join(strings.Fields(strings.Join([]string{string(f.Severity), f.Reason, f.Pod, f.Object}, " ")), " "))
	}
	return lines
}

func pod(change func(*Pod)) Facts {
	p := Pod{Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}}
	change(&p)
	return Facts{Pods: []Pod{p}}
}

// job is a pod that a Job of an API group and version has made.
func job(policy corev1.RestartPolicy, version string) Facts {
	return pod(func(p *Pod) {
		p.Spec.RestartPolicy = policy
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: "Job", Name: "o", Controller: ptr.To(true)}}
	})
}

func hostPath(path string, kind *corev1.HostPathType) corev1.Volume {
	return corev1.Volume{Name: "h", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path, Type: kind}}}
}

func limits(p *Pod, name corev1.ResourceName) {
	p.Spec.Containers = []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{name: resource.MustParse("1")}}}}
}

func volatile(path string) bool { return strings.HasPrefix(path, "/run/") }

func TestCheckOfPods(t *testing.T) {
	object := func(o Object) Facts { return pod(func(p *Pod) { p.Objects = []Object{o} }) }
	image := func(i Image, offline v1alpha1.Offline) Facts {
		facts := pod(func(p *Pod) { p.Images = []Image{i} })
		facts.Policy = &v1alpha1.NodeRecoverySpec{Offline: offline}
		return facts
	}
	asWritten := v1alpha1.Offline{ImagePullPolicy: v1alpha1.ImagePullAsWritten}
	cases := map[string]struct {
		facts Facts
		want  []string
	}{
		"a pod that needs nothing":                           {facts: pod(func(*Pod) {})},
		"an object that is there":                            {facts: object(Object{Resource: "configmaps", Name: "c"})},
		"an object that is not":                              {facts: object(Object{Resource: "configmaps", Name: "c", State: ObjectAbsent}), want: []string{"BlocksPod ObjectMissing shop/web configmaps/c"}},
		"an optional object that is known not to exist":      {facts: object(Object{Resource: "secrets", Optional: true, State: ObjectAbsent})},
		"an optional object that may exist":                  {facts: object(Object{Resource: "secrets", Optional: true, State: ObjectUnknown}), want: []string{"BlocksPod ObjectMissing shop/web secrets"}},
		"a secret is never named":                            {facts: object(Object{Resource: "secrets", State: ObjectUnknown}), want: []string{"BlocksPod ObjectMissing shop/web secrets"}},
		"an object that does not decode":                     {facts: object(Object{Resource: "configmaps", Name: "c", State: ObjectUnreadable}), want: []string{"BlocksPod ObjectUnreadable shop/web configmaps/c"}},
		"a key that is not there":                            {facts: object(Object{Resource: "configmaps", Name: "c", MissingKeys: []string{"k"}}), want: []string{"BlocksPod KeyMissing shop/web configmaps/c"}},
		"a key of an optional reference that is not there":   {facts: object(Object{Resource: "configmaps", Name: "c", Optional: true, MissingKeys: []string{"k"}})},
		"a token that is not kept":                           {facts: pod(func(p *Pod) { p.TokensMissing, p.Spec.ServiceAccountName = 1, "a" }), want: []string{"BlocksPod TokenMissing shop/web serviceaccounts/a"}},
		"an image that is there and pinned":                  {facts: image(Image{Name: "i", Present: true, Pinned: true}, v1alpha1.Offline{})},
		"an image that is not there":                         {facts: image(Image{Name: "i"}, v1alpha1.Offline{}), want: []string{"BlocksPod ImageMissing shop/web i"}},
		"an image that is empty on the disk":                 {facts: image(Image{Name: "i", Present: true, Pinned: true, Damaged: "its program is empty"}, v1alpha1.Offline{}), want: []string{"BlocksPod ImageDamaged shop/web i"}},
		"Always, and the image is there":                     {facts: image(Image{Name: "i", Present: true, Pinned: true, Always: true}, v1alpha1.Offline{})},
		"Always, as written":                                 {facts: image(Image{Name: "i", Present: true, Pinned: true, Always: true}, asWritten), want: []string{"BlocksPod ImagePullNeeded shop/web i"}},
		"Always, and it never ran here":                      {facts: image(Image{Name: "i", Present: true, Pinned: true, Always: true, Unproven: true}, v1alpha1.Offline{}), want: []string{"BlocksPod ImagePullNeeded shop/web i"}},
		"IfNotPresent, and it never ran here":                {facts: image(Image{Name: "i", Present: true, Pinned: true, Unproven: true}, v1alpha1.Offline{})},
		"a pull that has not ended":                          {facts: image(Image{Name: "i", Present: true, Pinned: true, Refused: true, Pulling: true}, v1alpha1.Offline{}), want: []string{"BlocksPod ImageCredentials shop/web i"}},
		"a pull that has not ended, of an image for all":     {facts: image(Image{Name: "i", Present: true, Pinned: true, Pulling: true}, v1alpha1.Offline{})},
		"IfNotPresent, as written":                           {facts: image(Image{Name: "i", Present: true, Pinned: true}, asWritten)},
		"an image that needs a credential the pod has not":   {facts: image(Image{Name: "i", Present: true, Pinned: true, Refused: true}, v1alpha1.Offline{}), want: []string{"BlocksPod ImageCredentials shop/web i"}},
		"an image that is not pinned, told of the node once": {facts: image(Image{Name: "i", Present: true}, v1alpha1.Offline{}), want: []string{"Slows ImageNotPinned i"}},
		"a name that leads to another image":                 {facts: image(Image{Name: "i", Present: true, Pinned: true, Changed: true}, v1alpha1.Offline{}), want: []string{"Slows ImageChanged shop/web i"}},
		"a pod that runs once": {
			facts: pod(func(p *Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever }), want: []string{"BlocksPod NeverRestarted shop/web restartPolicy"},
		},
		"a Job's pod that runs once": {
			facts: job(corev1.RestartPolicyNever, "batch/v1"), want: []string{"Slows NeverRestarted shop/web restartPolicy"},
		},
		"a pod that runs once, of a controller that may not make another": {
			facts: job(corev1.RestartPolicyNever, "example.com/v1"), want: []string{"BlocksPod NeverRestarted shop/web restartPolicy"},
		},
		"a Job's pod that runs until it succeeds": {facts: job(corev1.RestartPolicyOnFailure, "batch/v1")},
		"a Job's pod that has not started yet": {facts: func() Facts {
			f := job(corev1.RestartPolicyNever, "batch/v1")
			f.Pods[0].Status.Phase = corev1.PodPending
			return f
		}()},
		"a pod that runs until it succeeds": {facts: pod(func(p *Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyOnFailure })},
		"a resource of a device plugin": {
			facts: func() Facts {
				f := pod(func(p *Pod) { limits(p, "vendor.example/card") })
				f.Node.Devices = []string{"vendor.example/card"}
				return f
			}(),
			want: []string{"BlocksPod DevicePlugin shop/web vendor.example/card"},
		},
		"a resource that the node was given by hand": {facts: pod(func(p *Pod) { limits(p, "vendor.example/card") })},
		"a pod certificate": {
			facts: pod(func(p *Pod) {
				p.Spec.Volumes = []corev1.Volume{{Name: "c", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{PodCertificate: &corev1.PodCertificateProjection{}}}}}}}
			}),
			want: []string{"BlocksPod PodCertificate shop/web volume/c"},
		},
		"a volume that may be attached elsewhere": {facts: pod(func(p *Pod) { p.Attached = true }), want: []string{"BlocksPod AttachedVolumeNotSynced shop/web"}},
		"a volume that is not waited for": {facts: func() Facts {
			f := pod(func(p *Pod) { p.Attached = true })
			f.Policy = &v1alpha1.NodeRecoverySpec{Offline: v1alpha1.Offline{AttachedVolumes: v1alpha1.AttachedVolumesStart}}
			return f
		}()},
		"a driver that registers": {facts: pod(func(p *Pod) { p.Drivers = []string{"d"} }), want: []string{"Slows DriverLate shop/web csidrivers/d"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, told(Check(tc.facts))); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckOfHostPaths(t *testing.T) {
	blocked := []string{"BlocksPod HostPathVolatile shop/web /run/app"}
	cases := map[string]struct {
		path  string
		kind  *corev1.HostPathType
		files []string
		maker string
		want  []string
	}{
		"a directory that a restart empties":             {path: "/run/app", kind: ptr.To(corev1.HostPathDirectory), want: blocked},
		"a socket in it":                                 {path: "/run/app/s", kind: ptr.To(corev1.HostPathSocket), want: []string{"BlocksPod HostPathVolatile shop/web /run/app/s"}},
		"a directory on the disk":                        {path: "/srv", kind: ptr.To(corev1.HostPathDirectory)},
		"a directory that is made when it is missing":    {path: "/run/app", kind: ptr.To(corev1.HostPathDirectoryOrCreate)},
		"a path without a type, which the runtime makes": {path: "/run/app"},
		"a directory with a file that the policy keeps":  {path: "/run/app", kind: ptr.To(corev1.HostPathDirectory), files: []string{"/run/app/env"}},
		"a file that the policy keeps":                   {path: "/run/app/env", kind: ptr.To(corev1.HostPathFile), files: []string{"/run/app/env"}},
		"another file than the policy keeps":             {path: "/run/app", kind: ptr.To(corev1.HostPathDirectory), files: []string{"/run/apple/env"}, want: blocked},
		"a directory that another pod makes":             {path: "/run/app", kind: ptr.To(corev1.HostPathDirectory), maker: "/run/app/"},
		"a directory on a disk that is mounted late":     {path: "/late", kind: ptr.To(corev1.HostPathDirectory), want: []string{"Slows HostPathLate shop/web /late"}},
		"a directory on a disk that nothing mounts":      {path: "/never", kind: ptr.To(corev1.HostPathDirectory), want: []string{"BlocksPod HostPathLate shop/web /never"}},
		"one there that is made when it is missing":      {path: "/never", kind: ptr.To(corev1.HostPathDirectoryOrCreate), want: []string{"Slows HostPathLate shop/web /never"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			facts := pod(func(p *Pod) { p.Spec.Volumes = []corev1.Volume{hostPath(tc.path, tc.kind)} })
			facts.Node.Volatile = volatile
			facts.Node.LateMount = func(path string) bool { return path == "/late" || path == "/never" }
			facts.Node.NeverMount = func(path string) bool { return path == "/never" }
			facts.Policy = &v1alpha1.NodeRecoverySpec{Snapshot: v1alpha1.Snapshot{NodeFiles: tc.files}}
			if tc.maker != "" {
				maker := pod(func(p *Pod) {
					p.Name, p.UID = "maker", "m"
					p.Spec.Volumes = []corev1.Volume{hostPath(strings.TrimSuffix(tc.maker, "/"), ptr.To(corev1.HostPathDirectoryOrCreate))}
				})
				facts.Pods = append(facts.Pods, maker.Pods...)
			}
			if diff := cmp.Diff(tc.want, told(Check(facts))); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckOfTheNode(t *testing.T) {
	life := func(from, to time.Duration) Certificate {
		return Certificate{NotBefore: noon.Add(from), NotAfter: noon.Add(to)}
	}
	certificate := life(-90*time.Hour, 10*time.Hour)
	cases := map[string]struct {
		node   Node
		policy *v1alpha1.NodeRecoverySpec
		want   []string
	}{
		"a node that is well":                                         {node: Node{Certificate: certificate, InStep: noon, CNI: CNI{Looked: true, Configured: true}, Units: []Unit{{Name: "kubelet.service", State: "enabled", Restart: time.Second}}}},
		"a list that would not be served":                             {node: Node{Untrusted: "why"}, want: []string{"BlocksNode PodListNotServed"}},
		"a collection that kubelet waits for":                         {node: Node{NotMirrored: []string{"services"}}, want: []string{"BlocksNode NotMirrored services"}},
		"a snapshot that is old":                                      {node: Node{InStep: noon.Add(-6 * time.Minute)}, want: []string{"Slows SnapshotStale"}},
		"a snapshot that the policy calls new":                        {node: Node{InStep: noon.Add(-6 * time.Minute)}, policy: &v1alpha1.NodeRecoverySpec{Snapshot: v1alpha1.Snapshot{MaxStalenessSeconds: 600}}},
		"no sealed copy":                                              {node: Node{Unsealed: true}, want: []string{"Slows NoSealedGeneration"}},
		"kubelet without the agent":                                   {node: Node{Serving: metav1.Condition{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonUnhooked}}, want: []string{"BlocksNode Unhooked"}},
		"kubelet that was not looked at":                              {node: Node{Serving: metav1.Condition{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotEvaluated}}},
		"a file of the installation that is gone":                     {node: Node{Missing: []string{"/usr/local/bin/rekindle-agent"}}, want: []string{"BlocksNode InstallIncomplete /usr/local/bin/rekindle-agent"}},
		"a file that helps when something fails":                      {node: Node{Missing: []string{"/etc/systemd/system/rekindle-retry.service", "/etc/systemd/system/multi-user.target.wants/rekindle-agent.service"}}, want: []string{"Slows InstallIncomplete /etc/systemd/system/rekindle-retry.service", "Slows InstallIncomplete /etc/systemd/system/multi-user.target.wants/rekindle-agent.service"}},
		"a unit that another starts":                                  {node: Node{Units: []Unit{{Name: "containerd.service", State: "disabled", Pulled: true}}}, want: []string{"Slows UnitDisabled containerd.service"}},
		"a masked unit that another would start":                      {node: Node{Units: []Unit{{Name: "containerd.service", State: "masked", Pulled: true}}}, want: []string{"BlocksNode UnitDisabled containerd.service"}},
		"a unit that would not start":                                 {node: Node{Units: []Unit{{Name: "kubelet.service", State: "disabled"}}}, want: []string{"BlocksNode UnitDisabled kubelet.service"}},
		"a unit that is masked until the restart":                     {node: Node{Units: []Unit{{Name: "containerd.service", State: "masked-runtime"}}}},
		"a unit that others start":                                    {node: Node{Units: []Unit{{Name: "containerd.service", State: "static"}}}},
		"a long pause before a restart":                               {node: Node{Units: []Unit{{Name: "kubelet.service", State: "enabled", Restart: 10 * time.Second}}}, want: []string{"Slows SlowRestart kubelet.service"}},
		"a wait for the network":                                      {node: Node{NetworkWait: true}, want: []string{"Slows NetworkWait network-online.target"}},
		"no clock":                                                    {node: Node{Clockless: true}, want: []string{"Slows NoClock /dev/rtc0"}},
		"an identity that cannot be used":                             {node: Node{Identity: "no kubeconfig"}, want: []string{"BlocksNode IdentityUnusable"}},
		"a certificate that was not rotated":                          {node: Node{Certificate: life(-93*24*time.Hour, 7*24*time.Hour)}, want: []string{"Slows CertificateEnding kubelet-client"}},
		"the last eight hours of a hundred days":                      {node: Node{Certificate: life(-100*24*time.Hour+8*time.Hour, 8*time.Hour)}, want: []string{"BlocksNode CertificateEnding kubelet-client"}},
		"the last day of a year":                                      {node: Node{Certificate: life(-364*24*time.Hour, 23*time.Hour)}, want: []string{"BlocksNode CertificateEnding kubelet-client"}},
		"a year's certificate with two months":                        {node: Node{Certificate: life(-305*24*time.Hour, 60*24*time.Hour)}},
		"an hour's certificate with ten minutes, as they are renewed": {node: Node{Certificate: life(-50*time.Minute, 10*time.Minute)}},
		"the last minute of an hour":                                  {node: Node{Certificate: life(-59*time.Minute, time.Minute)}, want: []string{"BlocksNode CertificateEnding kubelet-client"}},
		"a certificate that is over":                                  {node: Node{Certificate: life(-2*time.Hour, -time.Hour)}, want: []string{"BlocksNode CertificateEnding kubelet-client"}},
		"a CA in its last month":                                      {node: Node{Authority: life(-10*365*24*time.Hour, 20*24*time.Hour)}, want: []string{"Slows CertificateEnding cluster-ca"}},
		"a CA in its last day":                                        {node: Node{Authority: life(-10*365*24*time.Hour, time.Hour)}, want: []string{"BlocksNode CertificateEnding cluster-ca"}},
		"a CA with a year":                                            {node: Node{Authority: life(-9*365*24*time.Hour, 365*24*time.Hour)}},
		"an empty certificate that the agent moves aside":             {node: Node{Broken: []BrokenFile{{Path: "/k.crt", Why: "is empty", Mended: true}}}, want: []string{"Slows KubeletFileEmpty /k.crt"}},
		"an empty certificate of kubelet":                             {node: Node{Broken: []BrokenFile{{Path: "/k.crt", Why: "is empty"}}}, want: []string{"BlocksNode KubeletFileEmpty /k.crt"}},
		"a configuration that kubelet cannot read":                    {node: Node{Kubelet: Kubelet{Problem: "bad"}}, want: []string{"BlocksNode KubeletConfig"}},
		"a checkpoint that does not fit":                              {node: Node{Kubelet: Kubelet{Checkpoints: []BrokenFile{{Path: "/cpu_manager_state", Why: "is old"}}}}, want: []string{"BlocksNode KubeletCheckpoint /cpu_manager_state"}},
		"graceful shutdown":                                           {node: Node{Kubelet: Kubelet{GracefulShutdown: true}}, want: []string{"Slows GracefulShutdown shutdownGracePeriod"}},
		"a runtime that is not ready":                                 {node: Node{Runtime: Runtime{NotReady: "why"}}, want: []string{"BlocksNode RuntimeNotReady"}},
		"no network for pods":                                         {node: Node{CNI: CNI{Looked: true}}, want: []string{"BlocksNode CNINotConfigured"}},
		"a file that the network needs and a restart loses":           {node: Node{CNI: CNI{Lost: []string{"/run/flannel/subnet.env"}}}, want: []string{"BlocksNode CNIFileVolatile /run/flannel/subnet.env"}},
		"a network that asks the API server":                          {node: Node{CNI: CNI{Asks: "calico"}}, want: []string{"BlocksNode CNINeedsAPIServer calico"}},
		"a network whose credential has run out":                      {node: Node{CNI: CNI{CredentialEnds: noon.Add(-time.Minute), Credential: "/k"}}, want: []string{"BlocksNode CNICredentialEnded /k"}},
		"a network whose credential has not":                          {node: Node{CNI: CNI{CredentialEnds: noon.Add(time.Minute), Credential: "/k"}}},
		"a disk that is full":                                         {node: Node{Disks: []Disk{{Path: "/d", Full: "space"}}}, want: []string{"BlocksNode DiskFull /d"}},
		"a disk that will be full":                                    {node: Node{Disks: []Disk{{Path: "/d", Low: "inodes"}}}, want: []string{"Slows DiskFull /d"}},
		"a disk that is read-only":                                    {node: Node{Disks: []Disk{{Path: "/d", ReadOnly: true}}}, want: []string{"BlocksNode DiskReadOnly /d"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, told(Check(Facts{Now: noon, Node: tc.node, Policy: tc.policy}))); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatWasMissedIsToldOnceForEachResource(t *testing.T) {
	facts := Facts{Missed: []v1alpha1.MissedResource{{Group: "g", Resource: "r", Client: "a"}, {Group: "g", Resource: "r", Client: "b"}, {Resource: "pods"}}}
	if diff := cmp.Diff([]string{"Slows ResourceMissed r.g", "Slows ResourceMissed pods"}, told(Check(facts))); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

func TestAMessageIsAsLongAsTheStatusHasRoomFor(t *testing.T) {
	for _, f := range Check(Facts{Node: Node{Untrusted: strings.Repeat("ä", 300)}}) {
		if n := len([]rune(f.Message)); n > maxMessage {
			t.Errorf("%d characters", n)
		}
	}
}
