package readiness

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const podSigner = "rekindle.test/pods"

func podCertificate(pod *corev1.Pod) {
	volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{PodCertificate: &corev1.PodCertificateProjection{SignerName: podSigner, KeyType: "ECDSAP256", CredentialBundlePath: "bundle.pem"}},
	}}})(pod)
}

// signer signs what pods ask for, as one of the cluster would, while the spec runs.
func signer(ctx context.Context) {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	go func() {
		for ; ctx.Err() == nil; time.Sleep(poll) {
			requests, err := client.CertificatesV1().PodCertificateRequests(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
			if err != nil {
				continue
			}
			for _, request := range requests.Items {
				if request.Spec.SignerName == podSigner && len(request.Status.Conditions) == 0 {
					if err := sign(ctx, &request, key); err != nil {
						say("signing for %s: %v", request.Spec.PodName, err)
					}
				}
			}
		}
	}()
}

func sign(ctx context.Context, request *certificatesv1.PodCertificateRequest, key *ecdsa.PrivateKey) error {
	asked, err := x509.ParseCertificateRequest(request.Spec.StubPKCS10Request)
	if err != nil {
		return err
	}
	begins := time.Now().Truncate(time.Second)
	ends := begins.Add(2 * time.Hour)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(begins.UnixNano()), Subject: pkix.Name{CommonName: request.Spec.PodName},
		NotBefore: begins, NotAfter: ends, DNSNames: []string{request.Spec.PodName},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, asked.PublicKey, key)
	if err != nil {
		return err
	}
	at := func(t time.Time) *metav1.Time { return &metav1.Time{Time: t} }
	request.Status = certificatesv1.PodCertificateRequestStatus{
		Conditions: []metav1.Condition{{
			Type: certificatesv1.PodCertificateRequestConditionTypeIssued, Status: metav1.ConditionTrue, Reason: "Signed", LastTransitionTime: metav1.Now(),
		}},
		CertificateChain: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})),
		NotBefore:        at(begins), BeginRefreshAt: at(begins.Add(time.Hour)), NotAfter: at(ends),
	}
	_, err = client.CertificatesV1().PodCertificateRequests(request.Namespace).UpdateStatus(ctx, request, metav1.UpdateOptions{})
	return err
}
