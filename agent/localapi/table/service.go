package table

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// shown is how many ports and endpoints of a slice are named.
const shown = 3

var serviceColumns = []metav1.TableColumnDefinition{
	nameColumn,
	column("Type", "How the service is exposed"),
	column("Cluster-IP", "Address within the cluster"),
	column("External-IP", "Addresses from outside"),
	column("Port(s)", "Ports of the service"),
	ageColumn,
	wide("Selector", "Labels of the pods behind the service"),
}

func serviceRow(service *corev1.Service) metav1.TableRow {
	ip := ""
	if len(service.Spec.ClusterIPs) > 0 {
		ip = service.Spec.ClusterIPs[0]
	}
	var ports []string
	for _, p := range service.Spec.Ports {
		port := fmt.Sprint(p.Port)
		if p.NodePort > 0 {
			port += fmt.Sprintf(":%d", p.NodePort)
		}
		ports = append(ports, port+"/"+string(p.Protocol))
	}
	return cells(service.Name, string(service.Spec.Type), or(ip, "<none>"), external(service),
		or(strings.Join(ports, ","), "<none>"), since(service.CreationTimestamp), labels.FormatLabels(service.Spec.Selector))
}

func external(service *corev1.Service) string {
	own := strings.Join(service.Spec.ExternalIPs, ",")
	switch service.Spec.Type {
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort:
		return or(own, "<none>")
	case corev1.ServiceTypeExternalName:
		return service.Spec.ExternalName
	case corev1.ServiceTypeLoadBalancer:
		var given []string
		for _, ingress := range service.Status.LoadBalancer.Ingress {
			if address := or(ingress.IP, ingress.Hostname); address != "" {
				given = append(given, address)
			}
		}
		slices.Sort(given)
		return or(strings.Join(append(slices.Compact(given), service.Spec.ExternalIPs...), ","), "<pending>")
	}
	return "<unknown>"
}

var endpointSliceColumns = []metav1.TableColumnDefinition{
	nameColumn,
	column("AddressType", "Kind of the addresses"),
	column("Ports", "Ports of every endpoint"),
	column("Endpoints", "Addresses of the endpoints"),
	ageColumn,
}

func endpointSliceRow(slice *discoveryv1.EndpointSlice) metav1.TableRow {
	var ports, addresses []string
	for _, p := range slice.Ports {
		switch {
		case p.Port != nil:
			ports = append(ports, fmt.Sprint(*p.Port))
		case p.Name != nil:
			ports = append(ports, *p.Name)
		default:
			ports = append(ports, "*")
		}
	}
	for _, endpoint := range slice.Endpoints {
		addresses = append(addresses, endpoint.Addresses...)
	}
	return cells(slice.Name, string(slice.AddressType), some(ports), some(addresses), since(slice.CreationTimestamp))
}

// some names the first few and counts the rest.
func some(values []string) string {
	switch {
	case len(values) == 0:
		return "<unset>"
	case len(values) > shown:
		return fmt.Sprintf("%s + %d more...", strings.Join(values[:shown], ","), len(values)-shown)
	}
	return strings.Join(values, ",")
}
