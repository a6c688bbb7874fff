package images

import (
	"fmt"
	"strings"
	"testing"

	"rekindle.edge/api/v1alpha1"
)

func TestWhatIsReportedIsWithinTheBoundsOfTheStatus(t *testing.T) {
	f := newFixture(t, false)
	long := "r.example/" + strings.Repeat("a", maxImage) + ":latest"
	status := v1alpha1.ImagesStatus{Wanted: 20, Problems: []v1alpha1.ImageProblem{{Image: long, Reason: v1alpha1.ImageNotPresent}}}
	for i := range 19 {
		status.Problems = append(status.Problems, v1alpha1.ImageProblem{Image: fmt.Sprintf("r.example/%d:latest", i), Reason: v1alpha1.ImageNotPresent})
	}
	f.publish(f.spec, status)
	got := f.Report().Status
	if len(got.Problems) != maxProblems || got.Wanted != 20 {
		t.Errorf("%d problems, %d wanted", len(got.Problems), got.Wanted)
	}
	if image := got.Problems[0].Image; len(image) != maxImage || !strings.HasSuffix(long, image) {
		t.Errorf("image %q", image)
	}
}
