package main

import (
	"context"
	"fmt"
	"io"
	"path"
	"strings"
	"time"
)

// step is something of which one resource has news.
type step struct {
	title string
	do    func() error
}

// tell watches one resource after the other, and then has each change where it is.
func (p *program) tell(s *servers, out io.Writer) error {
	where := strings.NewReplacer(s.grpc.Addr(), "ADDRESS", s.dir, "DIR")
	for _, step := range append(p.steps(),
		step{"the listener moves", func() error { return s.change(func(v *values) { v.port = 8443 }) }},
		step{"the secret is renewed", func() error { return s.change(func(v *values) { v.certificate = "2.pem" }) }},
		step{"the cluster is slower", func() error { return s.change(func(v *values) { v.connect = 2 * time.Second }) }},
		step{"the endpoint moves", func() error { return s.change(func(v *values) { v.endpoint = "10.0.0.2" }) }},
	) {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.title, err)
		}
		select {
		case text := <-p.news:
			fmt.Fprintf(out, "%s: %s\n", step.title, where.Replace(text))
		case <-p.ctx.Done():
			return fmt.Errorf("%s: no news of it: %w", step.title, context.Cause(p.ctx))
		}
	}
	for range len(p.streams) {
		i := <-p.streams
		of := "all types"
		if i.Type != "" {
			of = path.Base(i.Type)
		}
		fmt.Fprintf(out, "a stream of %s, for %s\n", where.Replace(i.Server), of)
	}
	return nil
}
