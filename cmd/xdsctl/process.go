package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"strings"
	"time"

	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/resources"
)

// defaultWait is how long a process may take to say what it has.
const defaultWait = 15 * time.Second

// processFlags say how a process is asked for what it has.
type processFlags struct {
	tlsFlags
	wait time.Duration
}

func (f *processFlags) register(set *pflag.FlagSet) {
	set.SortFlags = false
	f.tlsFlags.register(set, "", "certificate of the process (default the host of its address)")
	set.DurationVar(&f.wait, "for", defaultWait, "do not wait longer than this")
}

// check finds flags that make no sense.
func (f *processFlags) check() (*tls.Config, error) {
	if f.wait <= 0 {
		return nil, fmt.Errorf("--for %s: want more than nothing", f.wait)
	}
	return f.config()
}

// isURL says that a text is the address of Envoy's administration.
func isURL(text string) bool {
	return strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://")
}

// isAddress says that a text is meant as HOST:PORT, a URL, or another target of gRPC.
func isAddress(text string) bool { return strings.Contains(text, ":") }

// ask asks a process for what it has: at HOST:PORT by its client status service, at a URL for its config dump.
func (f *processFlags) ask(ctx context.Context, address string) (*resources.Process, error) {
	if err := processFault(address); err != nil {
		return nil, err
	}
	config, err := f.check()
	if err != nil {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, f.wait)
	defer cancel()
	var p *resources.Process
	if isURL(address) {
		p, err = fetchDump(within, address, config)
	} else {
		p, err = fetchStatus(within, strings.TrimPrefix(address, "csds:"), config)
	}
	if ctx.Err() != nil {
		return nil, errInterrupted
	}
	switch {
	case err != nil && within.Err() != nil:
		return nil, &statusError{statusFailed, fmt.Errorf("%s: the process did not say within %s (--for) what it has", address, f.wait)}
	case err != nil:
		return nil, &statusError{statusFailed, fmt.Errorf("%s: %w", address, err)}
	}
	return p, nil
}

// fetchStatus asks the client status service (envoy.service.status.v3.ClientStatusDiscoveryService).
func fetchStatus(ctx context.Context, address string, config *tls.Config) (*resources.Process, error) {
	creds := insecure.NewCredentials()
	if config != nil {
		creds = credentials.NewTLS(config)
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(creds))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	resp, err := statusv3.NewClientStatusDiscoveryServiceClient(conn).FetchClientStatus(ctx, &statusv3.ClientStatusRequest{}, grpc.MaxCallRecvMsgSize(resources.MaxFile))
	if err != nil {
		return nil, err
	}
	return resources.FromStatus(resp), nil
}

// fetchDump gets a config dump; of a URL without a path that of Envoy's administration, with endpoints.
func fetchDump(ctx context.Context, address string, config *tls.Config) (*resources.Process, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("not a URL")
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path, u.RawQuery = "/config_dump", "include_eds"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	// H-3: of a connection that is kept, package http prints what comes after the response.
	t := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	defer t.CloseIdleConnections()
	resp, err := t.RoundTrip(req)
	if err != nil {
		return nil, unquoted(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	return readProcess(resp.Body)
}

// unquoted is an error of a request without what it quotes of a response that is not HTTP: H-3.
func unquoted(err error) error {
	if errors.As(err, new(*net.OpError)) || errors.As(err, new(*tls.CertificateVerificationError)) {
		return err
	}
	text := err.Error()
	if p := textproto.ProtocolError(""); errors.As(err, &p) { // which quotes after a colon
		kind, _, _ := strings.Cut(string(p), ":")
		text = strings.Replace(text, string(p), kind, 1)
	}
	said, _, quotes := strings.Cut(text, `"`)
	if said = strings.TrimRight(said, " ,;:=("); quotes || said != err.Error() {
		return errors.New(said)
	}
	return err
}

func readProcess(in io.Reader) (*resources.Process, error) {
	text, err := io.ReadAll(io.LimitReader(in, resources.MaxFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > resources.MaxFile {
		return nil, fmt.Errorf("more than %d bytes", resources.MaxFile)
	}
	return resources.ReadProcess(text)
}

// askOrRead is ask, and reads a file if there is one of that name, or if it is no address; "-" is standard input.
func (f *processFlags) askOrRead(ctx context.Context, operand string, stdin io.Reader) (*resources.Process, error) {
	_, err := os.Stat(operand)
	if operand != "-" && err != nil && isAddress(operand) {
		return f.ask(ctx, operand)
	}
	in := stdin
	if operand != "-" {
		file, err := os.Open(operand)
		if err != nil {
			return nil, &statusError{statusFailed, err}
		}
		defer file.Close()
		in = file
	}
	p, err := readProcess(in)
	if err != nil {
		return nil, &statusError{statusFailed, fmt.Errorf("%s: %w", operand, err)}
	}
	return p, nil
}
