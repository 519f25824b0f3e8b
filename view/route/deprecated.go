package route

//lint:file-ignore SA1019 servers still send these forms

import routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

// compileDeprecated reads the forms of a header's condition from before string_match.
func compileDeprecated(m *routev3.HeaderMatcher, f *faults) (text, error) {
	switch s := m.GetHeaderMatchSpecifier().(type) {
	case *routev3.HeaderMatcher_SafeRegexMatch:
		return compileRegex(s.SafeRegexMatch, f)
	case *routev3.HeaderMatcher_ExactMatch:
		return text{kind: textExact, want: s.ExactMatch}, nil
	case *routev3.HeaderMatcher_PrefixMatch:
		return text{kind: textPrefix, want: s.PrefixMatch}, nil
	case *routev3.HeaderMatcher_SuffixMatch:
		return text{kind: textSuffix, want: s.SuffixMatch}, nil
	case *routev3.HeaderMatcher_ContainsMatch:
		return text{kind: textContains, want: s.ContainsMatch}, nil
	default:
		return text{}, errUnknown
	}
}
