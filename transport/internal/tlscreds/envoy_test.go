package tlscreds_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport/internal/tlscreds"
)

// envoyTLS is what an UpstreamTlsContext makes of a connection to the host "xds".
func envoyTLS(t *testing.T, context string) bootstrap.TLS {
	t.Helper()
	boot, err := bootstrap.Parse("envoy", []byte(`
node: {id: a, cluster: b}
dynamic_resources: {ads_config: {api_type: GRPC, grpc_services: [{envoy_grpc: {cluster_name: c}}]}}
static_resources:
  clusters:
  - name: c
    load_assignment: {endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: xds, port_value: 1}}}}]}]}
    transport_socket:
      name: tls
      typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, `+context+`}
`))
	if err != nil {
		t.Fatal(err)
	}
	return *boot.Servers[0].ChannelCreds.TLS
}

// What Envoy's TLS context asks for is kept to in the handshake.
//
// spec: H-6
func TestEnvoyHandshakes(t *testing.T) {
	ca, other := newCA(t), newCA(t)
	cert := issue(t, ca, testutil.CertOptions{DNS: []string{"xds"}})
	stranger := issue(t, other, testutil.CertOptions{DNS: []string{"elsewhere"}})
	caFile := write(t, t.TempDir()+"/ca.pem", ca.PEM)
	trusted := `trusted_ca: {filename: "` + caFile + `"}`
	hash := func(c *testutil.Cert) string {
		sum := sha256.Sum256(parsed(t, c).Raw)
		return hex.EncodeToString(sum[:])
	}
	key := sha256.Sum256(parsed(t, cert).RawSubjectPublicKeyInfo)
	spki := base64.StdEncoding.EncodeToString(key[:])
	validation := func(text string) string { return `common_tls_context: {validation_context: {` + text + `}}` }
	params := func(text string) string {
		return `common_tls_context: {validation_context: {` + trusted + `}, tls_params: {` + text + `}}`
	}
	names := func(typ, name string) string {
		return validation(trusted + `, match_typed_subject_alt_names: [{san_type: ` + typ + `, matcher: {exact: "` + name + `"}}]`)
	}
	const suite128 = tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
	good := server{cert: cert}
	for name, c := range map[string]struct {
		context string
		server  server
		want    string
	}{
		"trusted":                  {validation(trusted), good, ""},
		"untrusted":                {validation(trusted), server{cert: stranger}, "certificate"},
		"asked for nothing":        {validation(`trust_chain_verification: ACCEPT_UNTRUSTED`), server{cert: stranger}, ""},
		"name":                     {names("DNS", "xds"), good, ""},
		"another name":             {names("DNS", "other"), good, `is for ["xds"], none of ["other"]`},
		"a name of another CA":     {names("DNS", "elsewhere"), server{cert: stranger}, "unknown authority"},
		"SNI in place of the name": {`auto_sni_san_validation: true, sni: wrong, ` + names("DNS", "xds"), good, "not wrong"},
		"hash":                     {validation(`verify_certificate_hash: ["` + hash(stranger) + `", "` + hash(cert) + `"]`), good, ""},
		"hash with colons":         {validation(`verify_certificate_hash: ["` + colons(hash(cert)) + `"]`), good, ""},
		"another hash":             {validation(`verify_certificate_hash: ["` + hash(stranger) + `"]`), good, "none of those that the configuration has hashes of"},
		"another hash of the CA":   {validation(trusted + `, verify_certificate_hash: ["` + hash(stranger) + `"]`), good, "none of those that the configuration has hashes of"},
		"hash, another CA":         {validation(trusted + `, verify_certificate_hash: ["` + hash(stranger) + `"]`), server{cert: stranger}, "certificate"},
		"key":                      {validation(`verify_certificate_spki: ["` + spki + `"]`), good, ""},
		"another key":              {validation(`verify_certificate_spki: ["` + spki + `"]`), server{cert: stranger}, "none of those that the configuration has hashes of"},
		"version":                  {params(`tls_minimum_protocol_version: TLSv1_3`), good, ""},
		"version too low":          {params(`tls_minimum_protocol_version: TLSv1_3`), server{cert: cert, version: tls.VersionTLS12}, "protocol version"},
		"version too high":         {params(`tls_maximum_protocol_version: TLSv1_2`), server{cert: cert, least: tls.VersionTLS13}, "protocol version"},
		"suite":                    {params(`cipher_suites: [ECDHE-ECDSA-AES128-GCM-SHA256]`), server{cert: cert, suites: []uint16{suite128}}, ""},
		"another suite":            {params(`cipher_suites: [ECDHE-ECDSA-AES256-GCM-SHA384]`), server{cert: cert, suites: []uint16{suite128}}, "handshake failure"},
		"curve":                    {params(`ecdh_curves: [P-256]`), server{cert: cert, curves: []tls.CurveID{tls.CurveP256}}, ""},
		"another curve":            {params(`ecdh_curves: [P-256]`), server{cert: cert, curves: []tls.CurveID{tls.X25519}}, "handshake failure"},
	} {
		t.Run(name, func(t *testing.T) {
			wantShake(t, tlscreds.New(envoyTLS(t, c.context)), "xds", c.server, c.want)
		})
	}
}

// An RSA key may do what its certificate says, where that is asked for.
//
// spec: H-6
func TestEnforceRSAKeyUsage(t *testing.T) {
	const accept = `common_tls_context: {validation_context: {trust_chain_verification: ACCEPT_UNTRUSTED}}`
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for usage, want := range map[x509.KeyUsage]string{
		0: "", x509.KeyUsageDigitalSignature: "", x509.KeyUsageKeyEncipherment: "does not allow what it is used for",
	} {
		s := server{cert: rsaCert(t, key, usage)}
		wantShake(t, tlscreds.New(envoyTLS(t, accept)), "xds", s, "")
		wantShake(t, tlscreds.New(envoyTLS(t, `enforce_rsa_key_usage: true, `+accept)), "xds", s, want)
	}
}

func parsed(t *testing.T, c *testutil.Cert) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(c.CertPEM)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func colons(digits string) string {
	var pairs []string
	for i := 0; i < len(digits); i += 2 {
		pairs = append(pairs, digits[i:i+2])
	}
	return strings.Join(pairs, ":")
}

// rsaCert is signed by a key of its own, that nobody knows.
func rsaCert(t *testing.T, key *rsa.PrivateKey, usage x509.KeyUsage) *testutil.Cert {
	t.Helper()
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), KeyUsage: usage, DNSNames: []string{"xds"}}
	der, err := x509.CreateCertificate(rand.Reader, template, &x509.Certificate{}, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	return &testutil.Cert{
		CertPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		KeyPEM:  pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
	}
}
