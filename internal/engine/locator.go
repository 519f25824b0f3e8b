package engine

import (
	"errors"
	"fmt"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/xdstp"
)

// Redirect is the value of a notice whose payload is no resource but says where the
// resource is (xRFC TP1, "Redirects").
type Redirect struct{ To xdstp.Locator }

// Why a locator cannot be followed.
var (
	errUnknownScheme = errors.New("its scheme has no name")
	errScheme        = errors.New("only the scheme xdstp is followed")
	errGlob          = errors.New("it stands for a collection and not for one resource")
	errOtherType     = errors.New("its type segment is another type")
	errDirective     = errors.New("a directive is neither alt nor entry")
	errAltDepth      = errors.New("alternatives are nested too deep")
)

// NewRedirect reads the payload of a redirect of a type. An error says why the locator
// cannot be one of a resource of the type; its alternatives are not looked at.
func NewRedirect(k resource.Kind, raw []byte) (*Redirect, error) {
	l, err := DecodeLocator(raw)
	if err != nil {
		return nil, fmt.Errorf("the redirect does not parse: %w", err)
	}
	segment := xdstp.TypeSegment(k.TypeURL())
	for _, d := range l.Directives {
		if d.Alt == nil {
			segment += "Collection" // of which an inline entry is meant
		}
	}
	switch {
	case l.Scheme != xdstp.SchemeXDSTP:
		err = errScheme
	case l.Name.Type != segment:
		err = errOtherType
	case l.Name.IsGlob():
		err = errGlob
	default:
		return &Redirect{l}, nil
	}
	return nil, fmt.Errorf("the redirect leads to %q: %w", l, err)
}

// redirectOf decodes an item that holds a locator.
func redirectOf(k resource.Kind, raw, old []byte) (value any, same bool, err error) {
	r, err := NewRedirect(k, raw)
	if err != nil {
		return nil, false, err
	}
	if old != nil {
		was, err := DecodeLocator(old)
		same = err == nil && was.Equal(r.To)
	}
	return r, same, nil
}

// DecodeLocator reads a serialized xds.core.v3.ResourceLocator, also in the form that xRFC
// TP1 shows, which has the URL in a string of the same number as the scheme.
func DecodeLocator(b []byte) (xdstp.Locator, error) {
	num, typ, n := protowire.ConsumeTag(b)
	if n > 0 && num == 1 && typ == protowire.BytesType {
		url, n := protowire.ConsumeString(b[n:])
		if n < 0 {
			return xdstp.Locator{}, protowire.ParseError(n)
		}
		return xdstp.ParseLocator(url)
	}
	var m xdscorev3.ResourceLocator
	if err := proto.Unmarshal(b, &m); err != nil {
		return xdstp.Locator{}, err
	}
	l, err := locatorOf(&m, 0)
	if err != nil {
		return xdstp.Locator{}, err
	}
	return xdstp.ParseLocator(l.String()) // which says what is wrong with it
}

const maxAltDepth = 8

func locatorOf(m *xdscorev3.ResourceLocator, depth int) (xdstp.Locator, error) {
	if depth > maxAltDepth {
		return xdstp.Locator{}, errAltDepth
	}
	l := xdstp.Locator{Name: xdstp.Name{
		Authority: m.GetAuthority(), Type: m.GetResourceType(), ID: m.GetId(),
	}}
	switch m.GetScheme() {
	case xdscorev3.ResourceLocator_XDSTP:
		l.Scheme = xdstp.SchemeXDSTP
	case xdscorev3.ResourceLocator_HTTP:
		l.Scheme = xdstp.SchemeHTTP
	case xdscorev3.ResourceLocator_FILE:
		l.Scheme = xdstp.SchemeFile
	default:
		return xdstp.Locator{}, errUnknownScheme
	}
	for k, v := range m.GetExactContext().GetParams() {
		l.Name.Params = append(l.Name.Params, xdstp.Param{Key: k, Value: v})
	}
	for _, d := range m.GetDirectives() {
		switch d := d.GetDirective().(type) {
		case *xdscorev3.ResourceLocator_Directive_Alt:
			alt, err := locatorOf(d.Alt, depth+1)
			if err != nil {
				return xdstp.Locator{}, err
			}
			l.Directives = append(l.Directives, xdstp.Directive{Alt: &alt})
		case *xdscorev3.ResourceLocator_Directive_Entry:
			l.Directives = append(l.Directives, xdstp.Directive{Entry: d.Entry})
		default:
			return xdstp.Locator{}, errDirective
		}
	}
	return l, nil
}
