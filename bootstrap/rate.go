package bootstrap

import (
	"encoding/json"
	"math"
	"strconv"
)

// RateLimit is a bucket of tokens, of which each request takes one, ACKs and NACKs included
// (envoy.config.core.v3.RateLimitSettings). What had to wait is sent as one request when there
// is a token again.
type RateLimit struct {
	// MaxTokens is how many requests the client may send at once after a silence. 0 means 100.
	MaxTokens uint32
	// FillRate is how many tokens are added each second; less than one a year counts as one a
	// year. 0 means 10.
	FillRate float64
}

// Defaults of rate_limit_settings.
const (
	defaultMaxTokens = 100
	defaultFillRate  = 10
)

func (r *RateLimit) clone() *RateLimit {
	if r == nil {
		return nil
	}
	out := *r
	return &out
}

// WithDefaults returns a copy with defaults filled; nil for nil.
func (r *RateLimit) WithDefaults() *RateLimit {
	out := r.clone()
	// RATE-1: 100 tokens, and 10 a second.
	if out != nil && out.MaxTokens == 0 {
		out.MaxTokens = defaultMaxTokens
	}
	if out != nil && out.FillRate == 0 {
		out.FillRate = defaultFillRate
	}
	return out
}

// rateFault says what is wrong with a fill rate.
func rateFault(perSecond float64) string {
	if !(perSecond > 0) || math.IsInf(perSecond, 0) {
		return "want a number of tokens for each second, more than 0"
	}
	return ""
}

// rateLimit reads rate_limit_settings; nil if it is absent.
func (x field) rateLimit() *RateLimit {
	if !x.object() {
		return nil
	}
	limit := RateLimit{}
	if most := x.at("max_tokens"); most.present() {
		if limit.MaxTokens = most.uint32(); limit.MaxTokens == 0 {
			most.fault("want a number of tokens, more than 0")
		}
	}
	if fill := x.at("fill_rate"); fill.present() {
		limit.FillRate = fill.number()
		if reason := rateFault(limit.FillRate); reason != "" {
			fill.fault("%s", reason)
		}
	}
	return limit.WithDefaults()
}

// digits is the text of a number, which protobuf's JSON allows in a string too.
func (x field) digits() string {
	switch v := x.val.(type) {
	case json.Number:
		return v.String()
	case string:
		return v
	}
	return ""
}

// uint32 is a google.protobuf.UInt32Value; 0 if it is none.
func (x field) uint32() uint32 {
	n, err := strconv.ParseUint(x.digits(), 10, 32)
	if err != nil {
		return 0
	}
	return uint32(n)
}

// number is a google.protobuf.DoubleValue; NaN if it is none.
func (x field) number() float64 {
	f, err := strconv.ParseFloat(x.digits(), 64)
	if err != nil {
		return math.NaN()
	}
	return f
}
