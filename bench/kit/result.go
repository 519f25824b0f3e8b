package kit

// Result is one run of a driver, as its line of JSON.
type Result struct {
	Driver   string `json:"driver"`
	Work     string `json:"work"`
	Variant  string `json:"variant"`
	Type     string `json:"type"`
	N        int    `json:"n"`
	Eps      int    `json:"eps,omitempty"`
	Updates  int    `json:"updates,omitempty"`
	Watchers int    `json:"watchers,omitempty"`
	TLS      bool   `json:"tls,omitempty"`
	Mode     string `json:"mode,omitempty"`
	NA       string `json:"na,omitempty"`
	Err      string `json:"err,omitempty"`

	// From the start to the last of N resources.
	LoadMS     float64 `json:"load_ms,omitempty"`
	LoadCPUMS  float64 `json:"load_cpu_ms,omitempty"`
	LoadAlloc  float64 `json:"load_alloc_mb,omitempty"`
	LoadAllocs float64 `json:"load_allocs,omitempty"`
	LoadRSSMB  float64 `json:"load_peak_rss_mb,omitempty"`
	LoadReqs   int64   `json:"load_reqs,omitempty"`
	LoadReqMB  float64 `json:"load_req_mb,omitempty"`
	LoadRespMB float64 `json:"load_resp_mb,omitempty"`
	LoadSrvCPU float64 `json:"load_server_cpu_ms,omitempty"`
	LoadConns  int64   `json:"load_conns,omitempty"`

	// Held after the load, less what was held before the client existed.
	HeapMB     float64 `json:"heap_mb"`
	HeapPerRes float64 `json:"heap_per_res"` // bytes
	StackMB    float64 `json:"stack_mb"`     // of goroutines, in the same way
	Goroutines int     `json:"goroutines"`

	BaseRSSMB float64 `json:"base_rss_mb,omitempty"` // peak before the client existed
	PeakRSSMB float64 `json:"peak_rss_mb,omitempty"`

	// The phase after the load: all workloads but load.
	MS        float64 `json:"ms,omitempty"`
	CPUMS     float64 `json:"cpu_ms,omitempty"`
	AllocMB   float64 `json:"alloc_mb,omitempty"`
	Allocs    float64 `json:"allocs,omitempty"`
	P50US     float64 `json:"p50_us,omitempty"`
	P99US     float64 `json:"p99_us,omitempty"`
	Callbacks int64   `json:"callbacks,omitempty"`
	Reqs      int64   `json:"reqs,omitempty"`
	ReqMB     float64 `json:"req_mb,omitempty"`
	RespMB    float64 `json:"resp_mb,omitempty"`
	SrvCPU    float64 `json:"server_cpu_ms,omitempty"`
}

func newResult(name string, c *Config) *Result {
	r := &Result{Driver: name, Work: c.Work, Variant: c.Variant, Type: c.Type, N: c.N, TLS: c.TLS, Mode: c.Mode}
	if c.Type == EDSType {
		r.Eps = c.Eps
	}
	switch c.Work {
	case Fanout:
		r.Updates, r.Watchers = c.Updates, c.Watchers
	case Update, Heartbeat:
		r.Updates = c.Updates
	}
	return r
}

func (r *Result) setLoad(from, to *snap) {
	r.LoadMS, r.LoadCPUMS = ms(to.t.Sub(from.t)), ms(to.cpu-from.cpu)
	r.LoadAlloc, r.LoadAllocs = from.allocated(to)
	r.LoadRSSMB = peakRSS()
}

func (r *Result) setLoadTraffic(st Stats) {
	r.LoadConns = st.Conns
	r.LoadReqs, r.LoadReqMB, r.LoadRespMB, r.LoadSrvCPU = st.Reqs, mb(st.ReqBytes), mb(st.RespBytes), st.CPUMS
}

func (r *Result) setTraffic(st Stats) {
	r.Reqs, r.ReqMB, r.RespMB, r.SrvCPU = st.Reqs, mb(st.ReqBytes), mb(st.RespBytes), st.CPUMS
}
