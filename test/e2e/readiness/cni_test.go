package readiness

import (
	"context"
	"crypto/ecdsa"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"k8s.io/client-go/util/keyutil"
)

const (
	conflist = "/etc/cni/net.d/10-pods.conflist"
	// subnetFile is what flannel's plugin reads for each pod.
	subnetFile = "/run/flannel/subnet.env"
	// askConfig is by what a plugin asks the local API.
	askConfig = "/etc/cni/asks.kubeconfig"
	askNode   = "kubectl --kubeconfig=" + askConfig + " --request-timeout=5s get --raw /api/v1/nodes/" + nodeName
)

// plugin has the pod network made by a plugin of that type, which makes it as before once
// the condition, a command, holds. fields are more of its configuration, in JSON.
func plugin(ctx context.Context, kind, condition, fields string) {
	GinkgoHelper()
	write(ctx, "/opt/cni/bin/"+kind, `#!/bin/sh
export PATH=/opt/edge/bin:/usr/sbin:/usr/bin
`+condition+` >/dev/null 2>&1 </dev/null || { echo '{"cniVersion":"1.0.0","code":11,"msg":"it cannot"}'; exit 1; }
sed 's/"type":"`+kind+`"/"type":"bridge"/' | /usr/lib/cni/bridge
`)
	shell(ctx, "chmod 755 /opt/cni/bin/"+kind+` && sed -i 's/"type": "\(bridge\|`+kind+`\)",/"type": "`+kind+`",`+fields+`/' `+conflist)
}

// likeFlannel has a plugin that, as flannel's, reads a file which is in memory.
func likeFlannel(ctx context.Context) {
	shell(ctx, "mkdir -p /run/flannel && echo FLANNEL_MTU=1500 > "+subnetFile)
	plugin(ctx, "flannel", "test -e "+subnetFile, "")
}

// asksLocally has a plugin that asks the local API about the node for each pod, with a token
// which has that long to live.
func asksLocally(life time.Duration) step {
	return func(ctx context.Context) {
		GinkgoHelper()
		if life > 0 {
			applyText(ctx, `apiVersion: v1
kind: ServiceAccount
metadata: {name: cni, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: cni}
rules: [{apiGroups: [""], resources: [nodes], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: cni}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cni}
subjects: [{kind: ServiceAccount, name: cni, namespace: default}]
`)
		}
		token := ending(strings.TrimSpace(kubectl(ctx, "create", "token", "cni", "--duration=1h")), life)
		write(ctx, askConfig, `{"apiVersion":"v1","kind":"Config","current-context":"x","contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],`+
			`"clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:7443","certificate-authority":"/run/rekindle/pki/ca.crt"}}],`+
			`"users":[{"name":"u","user":{"token":"`+token+`"}}]}`)
		if life > 0 {
			plugin(ctx, "asks", askNode, `"kubeconfig": "`+strings.ReplaceAll(askConfig, "/", `\/`)+`",`)
			shell(ctx, askNode)
		}
	}
}

// ending is a token of the cluster's issuer with another end.
func ending(token string, life time.Duration) string {
	GinkgoHelper()
	key, err := keyutil.PrivateKeyFromFile(filepath.Join(shared.Lab().Dir, "cluster", "service-account.key"))
	Expect(err).NotTo(HaveOccurred())
	algorithm := jose.RS256
	if _, elliptic := key.(*ecdsa.PrivateKey); elliptic {
		algorithm = jose.ES256
	}
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{algorithm})
	Expect(err).NotTo(HaveOccurred())
	claims := map[string]any{}
	Expect(parsed.UnsafeClaimsWithoutVerification(&claims)).To(Succeed())
	claims["exp"] = time.Now().Add(life).Unix()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: key, KeyID: parsed.Headers[0].KeyID}}, nil)
	Expect(err).NotTo(HaveOccurred())
	signed, err := jwt.Signed(signer).Claims(claims).Serialize()
	Expect(err).NotTo(HaveOccurred())
	return signed
}
