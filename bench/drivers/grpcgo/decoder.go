package main

import (
	"bytes"
	"errors"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc/internal/xds/clients/xdsclient"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/bench/kit"
)

type data struct {
	name, stamp string
	raw         []byte
	msg         proto.Message
}

func (d *data) Bytes() []byte { return d.raw }

func (d *data) Equal(o xdsclient.ResourceData) bool {
	return o != nil && bytes.Equal(d.raw, o.Bytes())
}

type decoder struct {
	keep bool // the message
	typ  string
}

func (d *decoder) Decode(a *xdsclient.AnyProto, _ xdsclient.DecodeOptions) (*xdsclient.DecodeResult, error) {
	any := a.ToAny()
	if any.TypeUrl != d.typ {
		return nil, errors.New(any.TypeUrl)
	}
	r := &data{raw: any.Value}
	var m proto.Message
	if d.typ == kit.EDS {
		c := &endpointv3.ClusterLoadAssignment{}
		if err := proto.Unmarshal(any.Value, c); err != nil {
			return nil, err
		}
		r.name, r.stamp, m = c.ClusterName, c.Endpoints[0].LbEndpoints[0].GetEndpoint().Hostname, c
	} else {
		c := &clusterv3.Cluster{}
		if err := proto.Unmarshal(any.Value, c); err != nil {
			return nil, err
		}
		r.name, r.stamp, m = c.Name, c.AltStatName, c
	}
	if d.keep {
		r.msg = m
	}
	return &xdsclient.DecodeResult{Name: r.name, Resource: r}, nil
}
