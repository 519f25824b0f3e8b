package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/subscription"
)

// Bootstrap is what a bootstrap means, or what is wrong with it.
type Bootstrap struct {
	Source   string           `json:"source"` // the file, or where else it was
	Faults   []BootstrapFault `json:"faults"`
	*Meaning                  // nil if there are faults
}

// BootstrapFault is one thing that is wrong with a bootstrap.
type BootstrapFault struct {
	Path    string `json:"path"`
	Value   string `json:"value"` // as JSON; "" if it might be a secret
	Message string `json:"message"`
}

// Meaning is what a bootstrap means. Lists are never nil, but for those that gRPC alone has.
type Meaning struct {
	Node                   json.RawMessage `json:"node"`
	Sources                []Source        `json:"sources"`
	Startup                []Startup       `json:"startup"`
	ClientListenerTemplate string          `json:"client_listener_template"`
	ServerListenerTemplate string          `json:"server_listener_template"`
	CertificateProviders   []string        `json:"certificate_providers,omitempty"`
	AllowedGRPCServices    []string        `json:"allowed_grpc_services,omitempty"`
	Notices                []string        `json:"notices"` // what is ignored or assumed
}

// Source is who answers for some names: servers in order of priority.
type Source struct {
	Serves           string   `json:"serves"`
	ReachabilityOnly bool     `json:"fallback_on_reachability_only"`
	Servers          []Server `json:"servers"`
}

// Startup is what is subscribed to from the start.
type Startup struct {
	Type       string `json:"type"`
	Collection string `json:"collection"`
}

// Server is how a management server is reached.
type Server struct {
	URI             string      `json:"uri"`
	Carrier         string      `json:"carrier"` // "grpc", "rest" or "file"
	Endpoints       []string    `json:"endpoints,omitempty"`
	Transport       string      `json:"transport"` // "v3" or "v2"
	Variant         string      `json:"variant"`
	Streams         string      `json:"streams"`
	Credentials     Credentials `json:"credentials"`
	CallCredentials []string    `json:"call_credentials"`
	Headers         []string    `json:"headers"` // keys
	Features        []string    `json:"features"`
}

// Credentials are those of a channel, without their content.
type Credentials struct {
	Type        string `json:"type"` // "" for a file
	Verified    bool   `json:"verified"`
	TrustedCA   string `json:"trusted_ca,omitempty"`
	Certificate string `json:"certificate,omitempty"`
	PrivateKey  string `json:"private_key,omitempty"`
	ServerName  string `json:"server_name,omitempty"`
}

// text says the same in a few words.
func (c Credentials) text() string {
	switch c.Type {
	case "":
		return ""
	case "insecure":
		return "plaintext"
	case "tls":
	default:
		return c.Type
	}
	parts := []string{"TLS", "trusts " + c.TrustedCA}
	if !c.Verified {
		parts[1] = "does not verify the server"
	}
	if c.Certificate != "" {
		parts = append(parts, "certificate "+c.Certificate)
	}
	if c.ServerName != "" {
		parts = append(parts, "server name "+c.ServerName)
	}
	return strings.Join(parts, ", ")
}

// WriteBootstrap writes what a bootstrap means: as "text" or "json".
func WriteBootstrap(out io.Writer, format string, b Bootstrap) error {
	if format == "json" {
		return WriteJSON(out, b)
	}
	var buf bytes.Buffer
	b.text(&buf)
	_, err := out.Write(buf.Bytes())
	return err
}

func (b Bootstrap) text(buf *bytes.Buffer) {
	fmt.Fprintf(buf, "node  %s\n\n", Clean(string(b.Node)))
	rows := [][]string{{"SERVES", "SERVER", "CARRIER", "VARIANT", "STREAMS", "CREDENTIALS", "REMARKS"}}
	for _, src := range b.Sources {
		serves := src.Serves
		for _, s := range src.Servers {
			rows = append(rows, []string{serves, s.URI, s.Carrier, s.Variant, s.Streams, s.Credentials.text(), s.remarks()})
			serves = "  then"
			if src.ReachabilityOnly {
				serves = "  then, if none is reached,"
			}
		}
	}
	table(buf, "", rows)
	for _, s := range b.Startup {
		fmt.Fprintf(buf, "\nsubscribes from the start to %s %s", subscription.TypeText(s.Type), Clean(s.Collection))
	}
	list(buf, "names of clients' listeners (%s is the target)", b.ClientListenerTemplate)
	list(buf, "names of servers' listeners (%s is the address)", b.ServerListenerTemplate)
	list(buf, "certificate providers", b.CertificateProviders...)
	list(buf, "allowed gRPC services", b.AllowedGRPCServices...)
	for _, n := range b.Notices {
		fmt.Fprintf(buf, "\nnotice: %s", Clean(n))
	}
	buf.WriteByte('\n')
}

func (s Server) remarks() string {
	var parts []string
	add := func(label string, values []string) {
		if len(values) > 0 {
			parts = append(parts, label+" "+strings.Join(values, " "))
		}
	}
	add("endpoints", s.Endpoints)
	if s.Transport == "v2" {
		parts = append(parts, "version 2 of the protocol")
	}
	add("headers", s.Headers)
	add("tokens", s.CallCredentials)
	add("features", s.Features)
	return strings.Join(parts, "; ")
}

// list writes a line, if there is something to say.
func list(buf *bytes.Buffer, label string, values ...string) {
	if text := strings.Join(values, " "); text != "" {
		fmt.Fprintf(buf, "\n%s: %s", label, Clean(text))
	}
}
