package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// intercepted is a unary call that a handler answers.
type intercepted struct {
	proxy   *Proxy
	method  string
	handler Handler
	runtime *grpc.ClientConn
	stream  grpc.ServerStream

	// What the runtime answered last.
	forwarded       bool
	response        []byte
	err             error
	header, trailer metadata.MD
}

func (c *intercepted) serve() error {
	var request []byte
	if err := c.stream.RecvMsg(&request); err != nil {
		if errors.Is(err, io.EOF) {
			return pass(c.stream.Context(), c.runtime, c.method, c.stream) // the runtime has an answer to that
		}
		return err
	}
	response, err := c.handle(request)
	if c.header != nil {
		// It fails if the caller is gone, as sending the response does.
		_ = c.stream.SetHeader(incoming(c.header))
	}
	c.stream.SetTrailer(c.trailer)
	if err != nil {
		return err
	}
	return c.stream.SendMsg(&response)
}

// handle runs the handler. A broken one must not keep a pod from starting, nor have the
// runtime do a thing twice.
func (c *intercepted) handle(request []byte) (response []byte, err error) {
	ctx := c.stream.Context()
	defer func() {
		problem := recover()
		if problem == nil {
			return
		}
		c.proxy.Log.Error(fmt.Errorf("panic: %v", problem), "Handler has failed, the call passes unchanged", "method", c.method, "stack", string(debug.Stack()))
		if c.forwarded {
			response, err = c.response, c.err
		} else {
			response, err = c.forward(ctx, request)
		}
	}()
	return c.handler(ctx, request, c.forward)
}

// forward implements Forward.
func (c *intercepted) forward(ctx context.Context, request []byte) ([]byte, error) {
	c.forwarded = true
	c.header, c.trailer = nil, nil
	c.response, c.err = nil, status.Error(codes.Canceled, "the call was given up")
	ctx, cancel := context.WithCancel(outgoing(ctx, c.stream))
	defer cancel()
	callee, err := c.runtime.NewStream(ctx, anyStream, c.method)
	if err != nil {
		c.err = err
		return nil, err
	}
	if callee.SendMsg(&request) == nil {
		_ = callee.CloseSend() // never fails
	}
	c.response, c.err = c.receive(callee)
	return c.response, c.err
}

// receive the one response, and what follows it.
func (c *intercepted) receive(callee grpc.ClientStream) ([]byte, error) {
	var response, more []byte
	err := callee.RecvMsg(&response)
	c.header, _ = callee.Header() // it has come by now, or never will
	switch {
	case errors.Is(err, io.EOF):
		err = status.Errorf(codes.Internal, "%s has no response", c.method)
	case err == nil:
		err = callee.RecvMsg(&more)
		if err == nil {
			return nil, status.Errorf(codes.Internal, "%s has more than one response", c.method)
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	c.trailer = callee.Trailer()
	if err != nil {
		return nil, err
	}
	return response, nil
}
