package route

import (
	"strconv"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// header is a condition on a header of the request.
type header struct {
	name         headerName
	kind         headerKind
	text         text
	start, end   int64 // of a range; end is outside
	present      bool  // what headerPresent wants
	invert       bool
	missingEmpty bool // a missing header counts as empty
}

type headerKind uint8

const (
	headerText headerKind = iota
	headerRange
	headerPresent
)

func compileHeader(m *routev3.HeaderMatcher, f *faults) (header, error) {
	h := header{
		name: newHeaderName(m.GetName()), invert: m.GetInvertMatch(), missingEmpty: m.GetTreatMissingHeaderAsEmpty(),
	}
	var err error
	switch s := m.GetHeaderMatchSpecifier().(type) {
	case nil:
		h.kind, h.present = headerPresent, true
	case *routev3.HeaderMatcher_PresentMatch:
		h.kind, h.present = headerPresent, s.PresentMatch
	case *routev3.HeaderMatcher_RangeMatch:
		h.kind, h.start, h.end = headerRange, s.RangeMatch.GetStart(), s.RangeMatch.GetEnd()
	case *routev3.HeaderMatcher_StringMatch:
		h.text, err = compileText(s.StringMatch, f)
	default:
		h.text, err = compileDeprecated(m, f)
	}
	return h, err
}

// holds follows HeaderMatcher: a missing header fails the condition, inverted or not, unless
// presence is asked for or a missing header counts as empty.
func (h *header) holds(r *Request) bool {
	value, ok := r.value(&h.name)
	ok = ok || h.missingEmpty && !r.GRPC // which does not know it (gRFC A28)
	switch h.kind {
	case headerPresent:
		return (ok == h.present) != h.invert
	case headerRange:
		n, err := strconv.ParseInt(value, 10, 64)
		return ok && (err == nil && h.start <= n && n < h.end) != h.invert
	case headerText:
		if h.text.kind == textAlways {
			return true
		}
		return ok && h.text.matches(value) != h.invert
	}
	return true
}

// param is a condition on a query parameter or, with invert, on a cookie.
type param struct {
	name    string
	text    text
	isText  bool
	present bool // what is wanted if it is no text
	invert  bool
}

func compileQuery(m *routev3.QueryParameterMatcher, f *faults) (param, error) {
	p := param{name: m.GetName(), present: true}
	var err error
	switch s := m.GetQueryParameterMatchSpecifier().(type) {
	case nil:
	case *routev3.QueryParameterMatcher_PresentMatch:
		p.present = s.PresentMatch
	case *routev3.QueryParameterMatcher_StringMatch:
		err = p.compile(s.StringMatch, f)
	default:
		p.isText, err = true, errUnknown
	}
	return p, err
}

func compileCookie(m *routev3.CookieMatcher, f *faults) (param, error) {
	p := param{name: m.GetName(), invert: m.GetInvertMatch()}
	err := p.compile(m.GetStringMatch(), f)
	return p, err
}

func (p *param) compile(m *matcherv3.StringMatcher, f *faults) (err error) {
	p.isText = true
	p.text, err = compileText(m, f)
	return err
}

func (p *param) holds(value string, ok bool) bool {
	switch {
	case !p.isText:
		return ok == p.present
	case p.text.kind == textAlways:
		return true
	default:
		return (ok && p.text.matches(value)) != p.invert
	}
}
