package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/resources"
	"github.com/xdswatch/xdswatch/resource/resourcejson"
)

// serverFlags are --server and those that say of it what a bootstrap would.
type serverFlags struct {
	target string
	tlsFlags
	headers                    []string
	nodeID, nodeFile, metadata string
}

// serverFlagNames are the flags that belong to --server.
var serverFlagNames = append(slices.Clone(tlsFlagNames), "header", "node-id", "node", "node-metadata")

func (f *serverFlags) register(set *pflag.FlagSet) {
	set.StringVar(&f.target, "server", "", "no bootstrap: the management server at `HOST:PORT`, plaintext without --tls")
	f.tlsFlags.register(set, " to --server", "server's certificate (default the host of --server)")
	set.StringArrayVar(&f.headers, "header", nil, "a header `KEY=VALUE` of each stream to --server; may be repeated")
	set.StringVar(&f.nodeID, "node-id", "", "node `ID`, with --server (default "+defaultNode+", or as in --node)")
	set.StringVar(&f.nodeFile, "node", "", "`FILE` with the node (envoy.config.core.v3.Node) in JSON or YAML, with --server")
	set.StringVar(&f.metadata, "node-metadata", "", "metadata of the node, a `JSON` object; its keys replace those of --node")
}

// bootstrap is what the flags say, as a bootstrap.
func (f *serverFlags) bootstrap() (*bootstrap.Config, error) {
	s := bootstrap.ManagementServer{URI: f.target, ChannelCreds: bootstrap.Insecure()}
	node, nodeErr := f.node()
	headers, headerErr := f.initialMetadata()
	targetErr := targetFault(f.target)
	if targetErr != nil {
		targetErr = fmt.Errorf("--server: %w", targetErr)
	}
	secured, tlsErr := f.config()
	if err := errors.Join(targetErr, tlsErr, nodeErr, headerErr); err != nil {
		return nil, err
	}
	if secured != nil { // each handshake reads the files again
		s.ChannelCreds = bootstrap.ChannelCreds{Type: "tls", TLS: &bootstrap.TLS{
			CACertificateFile: f.caCert, CertificateFile: f.cert, PrivateKeyFile: f.key, ServerName: f.serverName,
		}}
	}
	s.Headers = headers
	c := &bootstrap.Config{Servers: []bootstrap.ManagementServer{s}, Node: node}
	if err := c.Validate(); err != nil {
		return nil, flagged(err)
	}
	return c.WithDefaults(), nil
}

// flagged names the flag in faults of headers.
func flagged(err error) error {
	joined, several := err.(interface{ Unwrap() []error })
	if several {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, flagged(e))
		}
		return errors.Join(all...)
	}
	var i int
	fault, ok := errors.AsType[*bootstrap.FieldError](err)
	if !ok {
		return err
	}
	if n, _ := fmt.Sscanf(fault.Path, "Servers[0].Headers[%d]", &i); n == 0 {
		return err
	}
	text := fmt.Sprintf("--header number %d: ", i+1)
	if f := fault.Value; f != "" && f != `""` {
		text += f + ": "
	}
	return errors.New(text + fault.Reason)
}

// initialMetadata are the headers. Values may be secret, so no error holds one.
func (f *serverFlags) initialMetadata() (hs []bootstrap.Header, err error) {
	for i, text := range f.headers {
		key, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, fmt.Errorf("--header number %d: want KEY=VALUE", i+1)
		}
		hs = append(hs, bootstrap.Header{Key: key, Value: value})
	}
	return hs, nil
}

// node is who the client says it is.
func (f *serverFlags) node() (*corev3.Node, error) {
	node := &corev3.Node{}
	if f.nodeFile != "" {
		if err := readNode(f.nodeFile, node); err != nil {
			return nil, fmt.Errorf("--node: %w", err)
		}
	}
	switch {
	case f.nodeID != "":
		node.Id = f.nodeID
	case node.Id == "":
		node.Id = defaultNode
	}
	if f.metadata == "" {
		return node, nil
	}
	more := &structpb.Struct{}
	if err := protojson.Unmarshal([]byte(f.metadata), more); err != nil {
		return nil, fmt.Errorf("--node-metadata: want a JSON object: %w", resources.Unplaced(err))
	}
	if node.Metadata == nil {
		node.Metadata = &structpb.Struct{Fields: map[string]*structpb.Value{}}
	}
	for key, value := range more.GetFields() {
		node.Metadata.Fields[key] = value
	}
	return node, nil
}

// maxNode is how large a file with a node may be, in bytes.
const maxNode = 1 << 20

func readNode(path string, node *corev3.Node) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxNode+1))
	if err != nil {
		return err
	}
	if len(data) > maxNode {
		return fmt.Errorf("%s: a node may have %d bytes", path, maxNode)
	}
	text, err := resourcejson.FromYAML(data, 4*maxNode)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if !bytes.HasPrefix(text, []byte("{")) {
		return fmt.Errorf("%s: want an object", path)
	}
	if err := protojson.Unmarshal(text, node); err != nil {
		return fmt.Errorf("%s: %w", path, resources.Unplaced(err))
	}
	return nil
}
