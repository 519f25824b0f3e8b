package csds_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/csds"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/sds"
	"github.com/xdswatch/xdswatch/testutil"
)

// secret is a Secret with a private key inline.
func secret() *tlsv3.Secret {
	return &tlsv3.Secret{Name: "s", Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: certificate()}}
}

func certificate() *tlsv3.TlsCertificate {
	return &tlsv3.TlsCertificate{PrivateKey: &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: marker}}}
}

func inAny(t testing.TB, m proto.Message) *anypb.Any {
	t.Helper()
	a, err := anypb.New(m)
	must(t, err)
	return a
}

// replaced are the bytes of a Secret that is in a file. A secret that the file replaces stands before it.
func replaced(t *testing.T, name string) []byte {
	t.Helper()
	generic := func(ds *corev3.DataSource) []byte {
		b, err := proto.Marshal(&tlsv3.Secret{Name: name, Type: &tlsv3.Secret_GenericSecret{GenericSecret: &tlsv3.GenericSecret{Secret: ds}}})
		must(t, err)
		return b
	}
	inline := generic(&corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: marker}})
	return append(inline, generic(&corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: "/etc/secret"}})...)
}

// No answer has a secret, accepted or refused, nor what nobody can look into.
//
// spec: CSDS-c H-3
func TestSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t)
		r := reader(t, csds.Config{}, p.c)
		p.watch(sds.Type, "s")
		socket := func(a *anypb.Any) *corev3.TransportSocket {
			return &corev3.TransportSocket{Name: "tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: a}}
		}
		inside := cluster("inside")
		inside.TransportSocket = socket(inAny(t, &tlsv3.UpstreamTlsContext{Sni: "sni", CommonTlsContext: &tlsv3.CommonTlsContext{
			TlsCertificates: []*tlsv3.TlsCertificate{certificate()},
		}}))
		unknown := cluster("unknown")
		unknown.TransportSocket = socket(&anypb.Any{TypeUrl: "type.googleapis.com/no.such.Type", Value: []byte(marker)})
		refused := invalid("refused")
		refused.TransportSocket = inside.TransportSocket
		twice := cluster("written-twice")
		twice.TransportSocket = socket(&anypb.Any{TypeUrl: sds.Type.TypeURL(), Value: replaced(t, "s")})
		for _, name := range []string{"inside", "unknown", "refused", "written-twice"} {
			p.watch(cds.Type, name)
		}
		p.watch(sds.Type, "t")
		// Nobody can tell what is secret in a type that is not linked.
		unlinked := resource.Custom(resource.TypePrefix+"no.such.Type", resource.Options{NameField: 1}, func(_ resource.Source, raw []byte) (int, error) {
			if strings.Contains(string(raw), "refuse") {
				return 0, errors.New("no")
			}
			return len(raw), nil
		})
		p.watch(unlinked, "u")
		p.watch(unlinked, "refuse")
		st := p.accept()
		secrets := testutil.SotW(sds.Type.TypeURL(), "1", "s1", secret())
		secrets.Resources = append(secrets.Resources, &anypb.Any{TypeUrl: sds.Type.TypeURL(), Value: replaced(t, "t")})
		p.send(st, secrets)
		u := &discoveryv3.DiscoveryResponse{TypeUrl: unlinked.TypeURL(), VersionInfo: "1", Nonce: "u1"}
		for _, name := range []string{"u", "refuse"} {
			// The marker is in field 2, beside the name.
			value := append([]byte{0x0a, byte(len(name))}, name...)
			u.Resources = append(u.Resources, &anypb.Any{TypeUrl: unlinked.TypeURL(), Value: append(append(value, 0x12, byte(len(marker))), marker...)})
		}
		p.send(st, u)
		p.send(st, testutil.SotW(cds.Type.TypeURL(), "1", "n1", inside, unknown, refused, twice))
		resp := fetch(t, r)
		text, err := proto.Marshal(resp)
		must(t, err)
		if strings.Contains(string(text), marker) {
			t.Error("the answer has the secret")
		}
		rows := resp.GetConfig()[0].GetGenericXdsConfigs()
		got := &clusterv3.Cluster{}
		must(t, rows[0].GetXdsConfig().UnmarshalTo(got))
		tls := &tlsv3.UpstreamTlsContext{}
		must(t, got.GetTransportSocket().GetTypedConfig().UnmarshalTo(tls))
		same(t, "what is no secret", tls.GetSni(), "sni")
		if rows[1].GetErrorState().GetFailedConfiguration() == nil || rows[4].GetXdsConfig() == nil || rows[5].GetXdsConfig() == nil {
			t.Errorf("contents are missing: %v", rows)
		}
		if rows[6].GetErrorState() == nil || rows[6].GetErrorState().GetFailedConfiguration() != nil || rows[7].GetName() != "u" || rows[7].GetXdsConfig() != nil {
			t.Errorf("of a type that is not linked there is %v", rows[6:])
		}
	})
}
