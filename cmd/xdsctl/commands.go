package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/subscription"
)

// readLines hands over the lines of an input until it ends, which closes the channel, or
// ctx does. A read that blocks outlives ctx.
func readLines(ctx context.Context, in io.Reader, notes io.Writer) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for r := bufio.NewReader(in); ; {
			line, err := r.ReadString('\n')
			if line != "" {
				select {
				case lines <- line:
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				if err != io.EOF {
					fmt.Fprintf(notes, "xdsctl: standard input: %v\n", err)
				}
				return
			}
		}
	}()
	return lines
}

// command obeys one line of standard input and says whether it was the last. A line that
// cannot be understood is told on standard error, and nothing else comes of it.
func (s *session) command(line string) (quit bool) {
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	rest = strings.TrimSpace(rest)
	var err error
	switch {
	case word == "":
	case word == "quit" && rest == "":
		return true
	case word == "dump" && rest == "":
		s.output.print(s.dump())
	case word == "watch":
		err = s.watchText(rest)
	case word == "unwatch":
		err = s.unwatchText(rest)
	default:
		err = fmt.Errorf("unknown command %.100q; want watch SUBSCRIPTION, unwatch SUBSCRIPTION, dump or quit", strings.TrimSpace(line))
	}
	if err != nil {
		fmt.Fprintf(s.notes, "xdsctl: standard input: %v\n", err)
	}
	return false
}

func (s *session) watchText(text string) error {
	sub, err := subscription.Parse(text)
	if err != nil {
		return err
	}
	if twice := s.watch(sub); len(twice) > 0 {
		return fmt.Errorf("%.100q is subscribed to already", text)
	}
	return nil
}

func (s *session) unwatchText(text string) error {
	sub, err := subscription.Parse(text)
	if err != nil {
		return err
	}
	if !s.unwatch(sub.Subscription) {
		return fmt.Errorf("%.100q is not subscribed to", text)
	}
	return nil
}
