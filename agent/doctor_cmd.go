package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"rekindle.edge/agent/config"
	"rekindle.edge/agent/cri"
	"rekindle.edge/agent/doctor"
	"rekindle.edge/agent/host"
	"rekindle.edge/agent/install"
	"rekindle.edge/agent/readiness"
	"rekindle.edge/agent/readiness/dryrun"
	"rekindle.edge/agent/readiness/gather"
	"rekindle.edge/agent/report"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/agent/warmup/images"
	"rekindle.edge/agent/wiring"
	"rekindle.edge/api/v1alpha1"
)

// doctorSocket answers doctor while the agent runs.
var doctorSocket = filepath.Join(wiring.RunDir, "agent.sock")

// cannotTell is the exit code when there is no verdict.
const cannotTell = 2

// newDryRun judges this node; installed says that the agent stands between kubelet and the
// API server. Suspect is told of images that were seen to be damaged; nil: nobody is.
func newDryRun(settings config.Config, runtime *cri.Client, units gather.Units, installed bool, serving func() metav1.Condition, missed func() []v1alpha1.MissedResource, suspect func(image string)) *dryrun.DryRun {
	g := &gather.Gatherer{
		Settings: settings, Serving: serving, Missed: missed, Identity: identity(settings), Units: units, Runtime: runtime, Now: time.Now,
	}
	if serving == nil {
		g.Serving = report.NotInstalled
	}
	if missed == nil {
		g.Missed = func() []v1alpha1.MissedResource { return nil }
	}
	looker := images.NewLooker(runtime, images.StateFile(settings.StateDir))
	looker.Suspect = suspect
	g.Content = looker
	if installed {
		g.Files = func() ([]string, error) { return install.Paths(settings) }
	}
	return &dryrun.DryRun{Gatherer: g}
}

// serveDoctor answers doctor until ctx ends.
func serveDoctor(ctx context.Context, facts func() report.Facts) {
	err := doctor.Serve(ctx, doctorSocket, func() doctor.Report { return doctorReport(facts(), doctor.FromAgent) })
	if err != nil && ctx.Err() == nil {
		logr.FromContextOrDiscard(ctx).Error(err, "rekindle-agent doctor will read the store itself")
	}
}

func doctorReport(facts report.Facts, source string) doctor.Report {
	if facts.Ready.Type == "" {
		facts.Ready = metav1.Condition{
			Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotEvaluated,
			Message: "The agent has made no dry run yet: the node has just started. Try again in a minute.",
		}
	}
	r := doctor.Report{
		Ready: facts.Ready.Status, Reason: facts.Ready.Reason, Message: facts.Ready.Message,
		Findings: facts.Findings, Forecast: facts.Forecast, TargetSeconds: targetOf(facts.Spec), Source: source,
	}
	if !facts.SurvivesUntil.IsZero() {
		r.SurvivesOfflineUntil = &metav1.Time{Time: facts.SurvivesUntil}
	}
	return r
}

// defaultTarget in seconds applies while no policy does.
const defaultTarget = 30

func targetOf(spec *snapshot.Spec) int32 {
	if spec == nil || spec.Spec.Target.RecoverySeconds == 0 {
		return defaultTarget
	}
	return spec.Spec.Target.RecoverySeconds
}

// doctorCommand prints whether the node would come back. Its exit code says it too.
func doctorCommand(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("doctor", flag.ContinueOnError)
	flags.SetOutput(stderr)
	path := flags.String("config", config.DefaultPath, "configuration `file`; the default one may be missing")
	output := flags.String("o", "", "output `format`: json or yaml; plain words without")
	if err := flags.Parse(args); err != nil {
		return cannotTell
	}
	if flags.NArg() > 0 || *output != "" && *output != "json" && *output != "yaml" {
		_, _ = fmt.Fprintln(stderr, "Usage: rekindle-agent doctor [-o json|yaml] [--config FILE]")
		return cannotTell
	}
	answer, err := diagnose(context.Background(), *path)
	if err == nil {
		err = write(stdout, answer, *output)
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "rekindle-agent doctor: %v\n", err)
		return cannotTell
	}
	return answer.ExitCode()
}

func write(out io.Writer, answer doctor.Report, format string) error {
	switch format {
	case "json":
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(answer)
	case "yaml":
		text, err := yaml.Marshal(answer)
		if err == nil {
			_, err = out.Write(text)
		}
		return err
	}
	return answer.Print(out)
}

// diagnose asks the agent, or looks itself.
func diagnose(ctx context.Context, path string) (doctor.Report, error) {
	answer, err := doctor.Ask(ctx, doctorSocket)
	if err == nil {
		return answer, nil
	}
	settings, err := config.Load(path)
	if err != nil {
		return doctor.Report{}, err
	}
	return examine(ctx, settings)
}

// examine makes a dry run over a copy of the store.
func examine(ctx context.Context, settings config.Config) (doctor.Report, error) {
	dir, remove, err := doctor.Copy(settings.StateDir, tempDir())
	if err != nil {
		return doctor.Report{}, err
	}
	defer remove()
	runtime := cri.New(settings.CRIEndpoint)
	defer func() { _ = runtime.Close() }()
	store, err := snapshot.Open(dir, logr.Discard(), storeOptions(settings, runtime)...)
	if err != nil {
		return doctor.Report{}, err
	}
	defer func() { _ = store.Close() }()
	contents, err := store.Load()
	if err != nil {
		return doctor.Report{}, err
	}
	units := &host.Systemd{}
	defer units.Close()
	_, missing := os.Stat("/etc/systemd/system/rekindle-agent.socket")
	serving := report.NotInstalled
	if missing == nil {
		serving = func() metav1.Condition {
			return metav1.Condition{
				Status:  metav1.ConditionUnknown,
				Message: "the agent does not answer, so whether kubelet is served is not known (systemctl status rekindle-agent)",
			}
		}
	}
	run := newDryRun(settings, runtime, units, missing == nil, serving, func() []v1alpha1.MissedResource { return nil }, nil)
	run.Gatherer.Objects, run.Gatherer.Spec = store.Objects(), func() *snapshot.Spec { return contents.Spec }
	result := run.Once(ctx)
	facts := report.Facts{
		Spec: contents.Spec, Findings: readiness.Sort(result.Findings), SurvivesUntil: result.SurvivesUntil,
	}
	facts.Ready = readiness.Conclude(facts.Findings, result.Invisible)
	facts.Forecast = readiness.Forecast(contents.Recoveries, result.Plan, targetOf(contents.Spec))
	return doctorReport(facts, doctor.FromStore), nil
}

// tempDir is memory where there is some: the copy holds what the store holds.
func tempDir() string {
	if info, err := os.Stat("/run"); err == nil && info.Mode()&fs.ModeDir != 0 {
		return "/run"
	}
	return os.TempDir()
}
