package transport

import (
	"bytes"
	"cmp"
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/transport/internal/tlscreds"
)

// restEndpoint is one address of a polled server.
type restEndpoint struct {
	network, address string
	base             url.URL          // scheme and authority
	secure           *tlscreds.Client // nil in the clear
	config           RESTConfig

	mu     sync.Mutex
	closed bool
	pool   *restPool              // what the next poll uses
	pools  map[*restPool]struct{} // all that are not closed, with those given up
}

func newRESTEndpoint(s bootstrap.ManagementServer, e bootstrap.RESTEndpoint, config RESTConfig) (*restEndpoint, error) {
	network, address, err := splitAddress(e.Address)
	if err != nil {
		return nil, err
	}
	creds := e.ChannelCreds
	if creds.Type == "" {
		creds = s.ChannelCreds
	}
	secure, err := restSecurity(creds)
	if err != nil {
		return nil, err
	}
	authority := cmp.Or(e.Authority, s.HostAuthority)
	if authority == "" && network == "tcp" {
		authority = address
	}
	base := url.URL{Scheme: "http", Host: cmp.Or(authority, "localhost")}
	if secure != nil {
		base.Scheme = "https"
	}
	if parsed, err := url.Parse(base.String() + "/"); err != nil || parsed.Host != base.Host || parsed.Path != "/" {
		return nil, fmt.Errorf("the authority %q cannot be the host of a URL", base.Host)
	}
	r := &restEndpoint{network: network, address: address, base: base, secure: secure, config: config, pools: map[*restPool]struct{}{}}
	r.renewLocked()
	return r, nil
}

// splitAddress understands the addresses of [bootstrap.RESTEndpoint].
func splitAddress(target string) (network, address string, err error) {
	if path, ok := strings.CutPrefix(target, "unix:"); ok {
		if rest, ok := strings.CutPrefix(path, "//"); ok {
			path = rest
		}
		if path == "" {
			return "", "", errors.New("no path of a socket")
		}
		return "unix", path, nil
	}
	if name, ok := strings.CutPrefix(target, "unix-abstract:"); ok {
		return "unix", "@" + name, nil
	}
	address = strings.TrimPrefix(target, "dns:///")
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", "", err
	}
	if host == "" || port == "" {
		return "", "", errors.New("want a host and a port")
	}
	return "tcp", address, nil
}

// restSecurity is nil for a server that is reached in the clear.
func restSecurity(c bootstrap.ChannelCreds) (*tlscreds.Client, error) {
	switch {
	case c.Build != nil:
		return nil, fmt.Errorf("channel_creds %q: credentials of a program's own are for gRPC only", c.Type)
	case c.Type == "insecure":
		return nil, nil
	case c.Type == "tls":
		var config bootstrap.TLS
		if c.TLS != nil {
			config = *c.TLS
		}
		return tlscreds.NewClient(config), nil
	}
	return nil, fmt.Errorf("channel_creds %q: nothing makes this type", c.Type)
}

// current returns the pool to use. It is to be released.
func (e *restEndpoint) current() (*restPool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, ErrClosed
	}
	e.pool.use()
	return e.pool, nil
}

// renewLocked makes a new pool.
func (e *restEndpoint) renewLocked() {
	e.pool = newRESTPool(e)
	e.pools[e.pool] = struct{}{}
}

// renew has the next poll dial anew: a connection without an answer may be dead.
func (e *restEndpoint) renew(failed *restPool) {
	if e.secure != nil {
		e.secure.Expire()
	}
	e.mu.Lock()
	if !e.closed && e.pool == failed {
		e.renewLocked()
	}
	e.mu.Unlock()
	failed.giveUp()
}

// done ends a use, and forgets a pool that was closed with it.
func (e *restEndpoint) done(p *restPool) {
	p.release()
	p.mu.Lock()
	closed := p.closed
	p.mu.Unlock()
	if closed {
		e.mu.Lock()
		delete(e.pools, p)
		e.mu.Unlock()
	}
}

func (e *restEndpoint) close() {
	e.mu.Lock()
	e.closed = true
	pools := e.pools
	e.pools = map[*restPool]struct{}{}
	e.mu.Unlock()
	for p := range pools {
		p.close()
	}
}

// reach waits for a connection, if there is none.
func (e *restEndpoint) reach(ctx context.Context) error {
	p, err := e.current()
	if err != nil {
		return err
	}
	defer e.done(p)
	if err = p.reach(ctx); err != nil {
		e.renew(p)
	}
	return err
}

// answer is what a poll brought: a status, and of 200 the body.
type answer struct {
	status int
	typ    string // the content type
	body   []byte
}

// post makes one poll. Its error means that the endpoint gave no answer.
func (e *restEndpoint) post(ctx context.Context, t *turn, path string, header http.Header, body []byte) (answer, error) {
	p, err := e.current()
	if err != nil {
		return answer{}, err
	}
	defer e.done(p)
	a, err := p.post(ctx, t, e.base.JoinPath(path).String(), header, body, e.config.MaxReceiveSize)
	switch {
	case a.status != 0, errors.As(err, new(*formError)):
		p.listen(nil, nil) // the server has accepted the client
	case ctx.Err() == nil && !errors.Is(err, errRedirect):
		err = cmp.Or(p.refusal(), err)
	}
	if err != nil && context.Cause(ctx) != errOvertaken && !errors.Is(err, errTooLarge) {
		e.renew(p)
	}
	return a, err
}

func (p *restPool) post(ctx context.Context, t *turn, url string, header http.Header, body []byte, limit int) (answer, error) {
	req, err := http.NewRequestWithContext(countRequests(ctx), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.Header = header
	resp, err := p.client.Do(req)
	if err != nil {
		return answer{}, unquoted(withoutURL(err))
	}
	defer resp.Body.Close()
	a := answer{status: resp.StatusCode, typ: resp.Header.Get("Content-Type")}
	switch {
	case a.status == http.StatusNotModified:
	case a.status == http.StatusSwitchingProtocols: // the body is the connection, of which ctx ends no read
	case a.status != http.StatusOK:
		a.body, _ = io.ReadAll(io.LimitReader(resp.Body, maxExcerpt)) // as much of it as there is
	case !slices.Contains([]string{"", "identity"}, strings.ToLower(resp.Header.Get("Content-Encoding"))):
		return a, &bodyError{a, fmt.Errorf("the body is encoded as %q, which was not offered", excerpt(resp.Header.Get("Content-Encoding")))}
	// H-8: after decompression too, which was not offered.
	case resp.ContentLength > int64(limit):
		return a, errTooLarge
	default:
		a.body, err = readAtMost(ctx, t, patient{resp.Body, ctx}, resp.ContentLength, limit)
		if err = unquoted(err); isBadGzip(err) {
			err = &bodyError{a, err}
		}
	}
	return a, err
}

// isBadGzip says that a body is not what its Content-Encoding says.
func isBadGzip(err error) bool {
	return errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.As(err, new(flate.CorruptInputError))
}

// errTooLarge is the end of a poll whose response is larger than the limit.
var errTooLarge = errors.New("the response is too large")

// patient is a reader for as long as a poll may take: what decompresses a body knows of no
// context.
type patient struct {
	io.Reader
	ctx context.Context
}

func (p patient) Read(b []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	return p.Reader.Read(b)
}

// readAtMost reads all. size is what the server says that there is, -1 if nothing. What is large waits for its turn, and
// takes no more room than has come.
func readAtMost(ctx context.Context, t *turn, r io.Reader, size int64, limit int) (body []byte, err error) {
	small, most := min(smallMessage, limit+1), limit
	switch {
	case size > smallMessage:
		most = int(size)
	case size >= 0:
		body = make([]byte, size)
		n, err := io.ReadFull(r, body)
		return body[:n], err
	default:
		body, err = io.ReadAll(io.LimitReader(r, int64(small)))
		if err != nil || len(body) < small {
			return body, err
		}
	}
	// H-5: as many as the budget allows.
	if small <= limit {
		if err := t.take(ctx, most); err != nil {
			return nil, err
		}
		defer t.share.complete()
		r = paced{r, t.share}
	}
	return readOn(body, io.LimitReader(r, int64(limit-len(body))+1), limit)
}

// readOn reads the rest of a body in pieces, and joins them once. io.ReadAll would copy all several times;
// nothing can interrupt the copy of a hundred megabytes, for which a collection waits, and with it everybody.
func readOn(body []byte, r io.Reader, limit int) ([]byte, error) {
	pieces, size := [][]byte{body}, len(body)
	for {
		piece := bytes.NewBuffer(make([]byte, 0, bodyPiece+bytes.MinRead))
		n, err := piece.ReadFrom(io.LimitReader(r, bodyPiece))
		pieces, size = append(pieces, piece.Bytes()), size+int(n)
		switch {
		case err != nil:
			return nil, err
		case size > limit:
			return nil, errTooLarge
		case n < bodyPiece:
			return bytes.Join(pieces, nil), nil
		}
	}
}

// withoutURL is the reason for which a request failed: the URL is told elsewhere.
func withoutURL(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		return ue.Err
	}
	return err
}

var errRedirect = errors.New("a redirect is refused")

// located refuses redirects whose Location is not a URL. Package http would quote the Location in
// its error, and it may hold a token.
type located struct{ *http.Transport }

func (l located) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := l.Transport.RoundTrip(req)
	if err != nil || resp.StatusCode/100 != 3 {
		return resp, err
	}
	// H-3: the error says what is wrong, and quotes nothing.
	if _, bad := resp.Location(); bad != nil && !errors.Is(bad, http.ErrNoLocation) {
		resp.Body.Close()
		return nil, fmt.Errorf("%w: its Location is not a URL", errRedirect)
	}
	return resp, nil
}

// checkRedirect keeps a poll, which may carry a token, with the host that was configured,
// and keeps it a POST.
func checkRedirect(to *http.Request, via []*http.Request) error {
	from := via[0]
	switch {
	// H-3: a redirect must not carry credentials to others.
	case to.URL.Host != from.URL.Host || to.URL.Scheme != from.URL.Scheme:
		return fmt.Errorf("%w: it leads to another host, %s", errRedirect, excerpt(to.URL.Scheme+"://"+to.URL.Host))
	case to.Method != http.MethodPost:
		return fmt.Errorf("%w: it makes a %s of the POST", errRedirect, to.Method)
	case len(via) > maxRedirects:
		return fmt.Errorf("%w: %d were followed", errRedirect, maxRedirects)
	}
	return nil
}
