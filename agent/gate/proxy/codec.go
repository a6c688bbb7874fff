package proxy

import (
	"fmt"

	"google.golang.org/grpc/mem"
)

// raw takes messages for the bytes that they are.
type raw struct{}

// Name implements encoding.CodecV2. The content type is that of a caller who names no
// codec, as kubelet does.
func (raw) Name() string { return "" }

// Marshal implements encoding.CodecV2.
func (raw) Marshal(v any) (mem.BufferSlice, error) {
	message, ok := v.(*[]byte)
	if !ok {
		return nil, fmt.Errorf("message of type %T, want bytes", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(*message)}, nil
}

// Unmarshal implements encoding.CodecV2.
func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	message, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("message of type %T, want bytes", v)
	}
	*message = data.Materialize()
	return nil
}
