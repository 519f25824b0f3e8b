package main

import (
	"context"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/resource/lds"
	"github.com/xdswatch/xdswatch/resource/sds"
)

// program is the client's side: what is watched, and where.
type program struct {
	ctx     context.Context
	fail    context.CancelCauseFunc // of ctx
	client  *client.Client
	boot    *bootstrap.Config
	news    chan string
	streams chan client.StreamInfo // that were opened
	// What the start-up list brought.
	listener *listenerv3.Listener
	cluster  *clusterv3.Cluster
}

// steps begin to watch one resource after the other.
func (p *program) steps() []step {
	var steps []step
	for _, s := range p.boot.Startup {
		switch s.TypeURL {
		case cds.Type.TypeURL():
			steps = append(steps, step{"clusters", func() error { return all(p, cds.Type, s, p.onCluster) }})
		case lds.Type.TypeURL():
			steps = append(steps, step{"listeners", func() error { return all(p, lds.Type, s, p.onListener) }})
		}
	}
	return append(steps, step{"its secret", p.watchSecret}, step{"its endpoints", p.watchEndpoints})
}

func (p *program) onCluster(c *clusterv3.Cluster) string {
	p.cluster = c
	return "connects within " + c.GetConnectTimeout().AsDuration().String()
}

func (p *program) onListener(l *listenerv3.Listener) string {
	p.listener = l
	return "is at " + addressText(l.GetAddress())
}

func (p *program) watchSecret() error {
	var tls tlsv3.DownstreamTlsContext
	if err := p.listener.GetFilterChains()[0].GetTransportSocket().GetTypedConfig().UnmarshalTo(&tls); err != nil {
		return err
	}
	ref := tls.GetCommonTlsContext().GetTlsCertificateSdsSecretConfigs()[0]
	return one(p, sds.Type, ref.GetName(), ref.GetSdsConfig(), func(s *tlsv3.Secret) string {
		return "is " + s.GetTlsCertificate().GetCertificateChain().GetFilename()
	})
}

func (p *program) watchEndpoints() error {
	ref := p.cluster.GetEdsClusterConfig()
	return one(p, eds.Type, ref.GetServiceName(), ref.GetEdsConfig(), func(e *endpointv3.ClusterLoadAssignment) string {
		return "is at " + addressText(e.GetEndpoints()[0].GetLbEndpoints()[0].GetEndpoint().GetAddress())
	})
}
