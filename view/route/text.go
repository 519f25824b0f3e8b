package route

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/xdswatch/xdswatch/internal/domains"
)

// text is a condition on a text.
type text struct {
	kind  textKind
	want  string
	fold  bool // case does not matter
	regex *regexp.Regexp
}

type textKind uint8

const (
	textAlways textKind = iota // in fault: see the package's comment
	textExact
	textPrefix
	textSuffix
	textContains
	textRegex
)

func compileText(m *matcherv3.StringMatcher, f *faults) (text, error) {
	fold := m.GetIgnoreCase()
	switch p := m.GetMatchPattern().(type) {
	case *matcherv3.StringMatcher_Exact:
		return text{kind: textExact, want: p.Exact, fold: fold}, nil
	case *matcherv3.StringMatcher_Prefix:
		return text{kind: textPrefix, want: p.Prefix, fold: fold}, nil
	case *matcherv3.StringMatcher_Suffix:
		return text{kind: textSuffix, want: p.Suffix, fold: fold}, nil
	case *matcherv3.StringMatcher_Contains:
		return text{kind: textContains, want: p.Contains, fold: fold}, nil
	case *matcherv3.StringMatcher_SafeRegex:
		return compileRegex(p.SafeRegex, f)
	case nil:
		return text{}, fmt.Errorf("no pattern")
	default:
		return text{}, errUnknown
	}
}

// compileRegex makes a regular expression that has to match the whole text.
func compileRegex(m *matcherv3.RegexMatcher, f *faults) (text, error) {
	if m.GetRegex() == "" {
		return text{}, fmt.Errorf("empty regular expression")
	}
	// The expression is parsed before the anchors come around it: as text, an expression such as
	// a)|(b could take them apart.
	re, err := f.room.parse(m.GetRegex())
	if err != nil {
		return text{}, err
	}
	whole := &syntax.Regexp{Op: syntax.OpConcat, Flags: syntax.Perl, Sub: []*syntax.Regexp{
		{Op: syntax.OpBeginText}, re, {Op: syntax.OpEndText},
	}}
	regex, err := regexp.Compile(whole.String())
	if err != nil {
		return text{}, err
	}
	return text{kind: textRegex, regex: regex}, nil
}

func (t *text) matches(s string) bool {
	switch t.kind {
	case textExact:
		return equal(s, t.want, t.fold)
	case textPrefix:
		return hasPrefix(s, t.want, t.fold)
	case textSuffix:
		return len(s) >= len(t.want) && equal(s[len(s)-len(t.want):], t.want, t.fold)
	case textContains:
		return contains(s, t.want, t.fold)
	case textRegex:
		return t.regex.MatchString(s)
	case textAlways:
		return true
	}
	return true
}

// equal has no regard to the case of letters with fold: of ASCII letters, as in Envoy, since Unicode's cases would make a
// long s (U+017F) an s.
func equal(s, want string, fold bool) bool {
	return s == want || fold && domains.EqualFold(s, want)
}

func hasPrefix(s, prefix string, fold bool) bool {
	return len(s) >= len(prefix) && equal(s[:len(prefix)], prefix, fold)
}

func contains(s, want string, fold bool) bool {
	if fold {
		s, want = domains.Lower(s), domains.Lower(want)
	}
	return strings.Contains(s, want)
}
