package images

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
)

// Unpin takes the agent's pins away, for a node that the agent leaves. The connection is
// to containerd.
func Unpin(ctx context.Context, connection grpc.ClientConnInterface) error {
	r := &runtime{connection}
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
