package images

import (
	"context"
	"errors"
	"fmt"
)

// Unpin takes the agent's pins away, for a node that the agent leaves. Endpoint is the
// container runtime's.
func Unpin(ctx context.Context, endpoint string) error {
	r, err := dial(endpoint)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	s, err := r.stock(ctx)
	if err != nil {
		return fmt.Errorf("pins of images stay, run this again when the runtime answers: %w", err)
	}
	var errs error
	for name, record := range s.records {
		if record.ours {
			if err := r.pin(ctx, name, false); err != nil {
				errs = errors.Join(errs, fmt.Errorf("image %s stays pinned: %w", name, err))
			}
		}
	}
	return errs
}
