// Package script reads and checks exchanges written as text: what happens to a client line
// by line, and below each line everything that the client did because of it.
//
// A script is a txtar archive. Its comment begins with the claim, then come headers, then
// steps, set apart by empty lines:
//
//	# A NACK keeps the last good version.
//	# spec: ACK-3
//
//	watch w1 cds a
//	----
//	-> 1 cds names=[a] node
//
//	recv cds 2 n2 a=bad:no
//	----
//	w1: failed a rejected: no
//	-> 1 cds names=[a] nonce="n2" error="resource index 0: a: no"
//
// What stands below ---- is all that may happen, so silence is asserted too. It is
// compared lane by lane: requests (->), and what the program is told; across lanes order
// does not count. Lines that begin with * are only looked at by drivers that see the
// inside of the client.
//
// # Headers
//
//	spec: ACK-3 …       the rules that the script proves
//	case: ID            the scenario of a reference client that it follows
//	server: WORD …      what the server is like: delta, per-type, manual (streams open
//	                    when the script says so), or a server feature; how many there
//	                    are: fallback is two, of which the second stands in for the
//	                    first, three is one more, two is two of which names without an
//	                    authority have the first only; fallback_on_reachability_only is
//	                    for all authorities; rate_limit_settings is two tokens, and one
//	                    for more each second
//	authority: A=@@,@   the servers of an authority's names, the first choice first
//	params: KEY=VALUE … the dynamic parameters of names without an authority;
//	                    A:KEY=VALUE is of those of authority A
//	client: WORD …      node-always, keep-deleted; keep-deleted-for is ten seconds;
//	                    initial_fetch_timeout is five
//	                    seconds for each watch; wait-forever is no end of it, but
//	                    for the watch impatient; no-timers is no does-not-exist
//	                    timers; guarded refuses responses that
//	                    leave fewer than two resources, by [Guard]; store is
//	                    a store of last known good resources
//	names: A:=PREFIX …  A:x stands for PREFIXx in the steps, as a:x for
//	                    xdstp://a/test.Bar/x
//	show: decode        tell how many payloads are decoded at a time
//	only: machine WHY   cannot be run through a whole client, and why
//
// # Commands
//
// Several stand on a line, set apart by semicolons, if they happen at one moment.
//
//	watch W TYPE NAME          W is how the script calls it; NAME * is everything, ** is
//	                           everything spelled out, xdstp://a/T/path/* is a glob
//	unwatch W
//	recv TYPE …                a response: see [Response]
//	end · retry                the stream ends; all waits are over
//	die @ · live @             no stream can be had at the first server; it can. @@ is
//	                           the second, @@@ the third
//	up · fail                  of a manual server: the stream stands, or cannot be had
//	sleep DURATION
//	block W · unblock W        the handler of W holds what it is given
//	stall · flow               writers are held back; they write again
//	slow · decode              decoding is held back; everything is decoded
//	describe TYPE KEY=VALUE …  the node has these parameters of the type from now on
//	store TYPE ITEM…           what the store has of an earlier run: items as of delta, and *
//	                           or a glob if its first state was complete; without items nothing any more
//	stick · load               the store does not answer; it answers
//	dump                       lists what is known, in lines that begin with =
//
// recv and end are for the stream that came up last, up and fail for the one that was asked
// for last; recv/1 is for the first that came up, at whichever server.
package script

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"
)

// Script is one exchange.
type Script struct {
	Name    string              // of the file
	Claim   string              // the first line
	Headers map[string][]string // "spec" → words, and so on
	Steps   []Step
	Files   map[string][]byte

	sought map[string]bool // words of headers, by header and word
}

// Step is one input and what has to follow.
type Step struct {
	Line  int // in the file
	Input string
	Want  []string
}

const ruler = "----"

// Parse reads a script.
func Parse(name string, data []byte) (*Script, error) {
	ar := txtar.Parse(data)
	s := &Script{Name: name, Headers: map[string][]string{}, Files: map[string][]byte{}}
	for _, f := range ar.Files {
		s.Files[f.Name] = f.Data
	}
	var step *Step
	ruled := false
	for i, line := range strings.Split(string(ar.Comment), "\n") {
		line = strings.TrimRight(line, " \t")
		switch {
		case strings.HasPrefix(line, "#"):
			s.header(strings.TrimSpace(line[1:]))
		case line == "":
			step, ruled = nil, false
		case step == nil:
			s.Steps = append(s.Steps, Step{Line: i + 1, Input: line})
			step = &s.Steps[len(s.Steps)-1]
		case line == ruler && !ruled:
			ruled = true
		case !ruled:
			return nil, fmt.Errorf("%s:%d: no %s below %q", name, i+1, ruler, step.Input)
		default:
			step.Want = append(step.Want, line)
		}
	}
	for i := range s.Steps {
		st := &s.Steps[i]
		st.Input = s.expand(st.Input)
		for j, line := range st.Want {
			st.Want[j] = s.expand(line)
		}
	}
	if s.Claim == "" || len(s.Steps) == 0 {
		return nil, fmt.Errorf("%s: a script has a claim in its first line, and steps", name)
	}
	return s, nil
}

// Load reads the scripts of a folder, in the order of their names. It is an error if there
// are none.
func Load(dir string) ([]*Script, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, errors.New("no scripts in " + dir)
	}
	var all []*Script
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		s, err := Parse(filepath.Base(file), data)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// Responses makes the frames of all responses of the scripts of a folder.
func Responses(dir string) ([][]byte, error) {
	scripts, err := Load(dir)
	if err != nil {
		return nil, err
	}
	var frames [][]byte
	for _, s := range scripts {
		of, err := s.responses()
		if err != nil {
			return nil, err
		}
		frames = append(frames, of...)
	}
	return frames, nil
}

func (s *Script) header(text string) {
	key, rest, ok := strings.Cut(text, ":")
	switch {
	case ok && !strings.Contains(key, " "):
		s.Headers[key] = append(s.Headers[key], strings.Fields(rest)...)
	case s.Claim == "":
		s.Claim = text
	}
}

// responses makes the frames of all responses of a script, in their order.
func (s *Script) responses() ([][]byte, error) {
	var frames [][]byte
	for _, step := range s.Steps {
		for command := range strings.SplitSeq(step.Input, ";") {
			words := strings.Fields(command)
			if len(words) == 0 || words[0] != "recv" && !strings.HasPrefix(words[0], "recv/") {
				continue
			}
			frame, err := Response(words[1:], s.Has("server", "delta"))
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %w", s.Name, step.Line, err)
			}
			frames = append(frames, frame)
		}
	}
	return frames, nil
}

// Has says whether a header holds a word. It is not for concurrent use.
func (s *Script) Has(header, word string) bool {
	if s.sought == nil {
		s.sought = map[string]bool{}
	}
	s.sought[header+" "+word] = true
	return slices.Contains(s.Headers[header], word)
}

// Unsought lists the words of the headers server and client that [Script.Has] was not asked for: the driver
// that ran the script does not know them.
func (s *Script) Unsought() (words []string) {
	for _, header := range []string{"server", "client"} {
		for _, word := range s.Headers[header] {
			if !s.sought[header+" "+word] {
				words = append(words, header+" "+word)
			}
		}
	}
	return words
}

// Lane selects lines to compare.
type Lane func(line string) bool

// The lanes.
func Requests(line string) bool { return strings.HasPrefix(line, "->") }

// Inside are the lines about the inside of the client.
func Inside(line string) bool { return strings.HasPrefix(line, "*") }

// Told is what the program hears.
func Told(line string) bool { return !Requests(line) && !Inside(line) }

// Diff compares what happened in a step with what should have, in the given lanes. It
// returns "" if they agree.
func (st Step) Diff(got []string, lanes ...Lane) string {
	var b strings.Builder
	for _, lane := range lanes {
		want, have := pick(st.Want, lane), pick(got, lane)
		if !slices.Equal(want, have) {
			fmt.Fprintf(&b, "line %d: %s\nwant:\n\t%s\ngot:\n\t%s\n", st.Line, st.Input,
				strings.Join(want, "\n\t"), strings.Join(have, "\n\t"))
		}
	}
	return b.String()
}

func pick(lines []string, lane Lane) []string {
	var picked []string
	for _, l := range lines {
		if lane(l) {
			picked = append(picked, l)
		}
	}
	return picked
}

// Update rewrites a script with what happened, one list of lines for each step. What is no script stays
// as it is.
func Update(data []byte, got [][]string) []byte {
	s, err := Parse("", data)
	if err != nil {
		return data
	}
	ar := txtar.Parse(data)
	lines := strings.Split(strings.TrimRight(string(ar.Comment), "\n"), "\n")
	var out []string
	next := 0 // of lines
	for i, step := range s.Steps {
		out = append(append(out, lines[next:step.Line]...), ruler)
		for _, line := range got[i] {
			out = append(out, s.shorten(line))
		}
		for next = step.Line; next < len(lines) && strings.TrimSpace(lines[next]) != ""; next++ {
			if strings.HasPrefix(lines[next], "#") {
				out = append(out, lines[next])
			}
		}
	}
	ar.Comment = []byte(strings.Join(append(out, lines[next:]...), "\n") + "\n")
	return txtar.Format(ar)
}
