package readiness

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/test/images"
)

// runtimeClass is one more name of the usual runtime.
func runtimeClass(name string) step {
	return func(ctx context.Context) {
		GinkgoHelper()
		_, err := client.NodeV1().RuntimeClasses().Create(ctx, &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: "runc"}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
}

// push makes the web image available from the registry under another name.
func push(repository string) step {
	return func(context.Context) {
		GinkgoHelper()
		Expect(registry.Push(repository, "1", images.Image{Name: repository, Binary: web, Args: []string{"-ready-after=0s"}})).To(Succeed())
	}
}

// password is what the registry asks the robot for.
const password = "let me in"

// robot makes a pull secret.
func robot(name, password string) step {
	return inCluster("create", "secret", "docker-registry", name, "--docker-server="+registryName, "--docker-username=robot", "--docker-password="+password)
}

// mounted has a directory of the disk mounted where another disk would be, with a directory
// in it, and listed in fstab with an option.
func mounted(point, option string) step {
	return onNode("mkdir -p /disks" + point + "/shop " + point + " && mount --bind /disks" + point + " " + point +
		" && echo '/disks" + point + " " + point + " none bind," + option + " 0 0' >> /etc/fstab")
}

// own puts an image on the node that has its configuration to itself.
func own(name string) step {
	return func(ctx context.Context) {
		GinkgoHelper()
		Expect(node.ImportImage(ctx, images.Image{Name: name, Binary: web, User: "0:0"})).To(Succeed())
	}
}

// emptyConfiguration leaves of an image's configuration what a power cut during a pull may.
func emptyConfiguration(name string) step {
	return onNode(`set -e; blobs=/var/lib/containerd/io.containerd.content.v1.content/blobs/sha256
manifest=$(ctr -n k8s.io images ls name==` + name + ` | sed -n 's/.*sha256:\([0-9a-f]*\).*/\1/p')
config=$(sed 's/.*"config":{[^}]*"sha256:\([0-9a-f]*\)".*/\1/' $blobs/$manifest)
test -s $blobs/$config; : > $blobs/$config`)
}

// runtimeDirectory installs a service that makes a directory in memory at each start.
func runtimeDirectory(name string) step {
	return func(ctx context.Context) {
		write(ctx, "/etc/systemd/system/"+name+".service", "[Unit]\nBefore=kubelet.service\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\nRuntimeDirectory="+name+"\n[Install]\nWantedBy=multi-user.target\n")
		shell(ctx, "systemctl daemon-reload && systemctl enable --now "+name+".service")
	}
}
