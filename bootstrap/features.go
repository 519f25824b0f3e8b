package bootstrap

import (
	"maps"
	"slices"
)

// serverFeatures are the entries of server_features that are understood, and what they set
// (gRFC A53, A88, A81, and this project's own). "xds_v3" says nothing any more (gRFC A30).
var serverFeatures = map[string]func(*ManagementServer){
	"xds_v3":                            func(*ManagementServer) {},
	"ignore_resource_deletion":          func(s *ManagementServer) { s.Features.IgnoreResourceDeletion = true },
	"fail_on_data_errors":               func(s *ManagementServer) { s.Features.FailOnDataErrors = true },
	"resource_timer_is_transient_error": func(s *ManagementServer) { s.Features.ResourceTimerIsTransientError = true },
	"trusted_xds_server":                func(s *ManagementServer) { s.Features.TrustedXDSServer = true },
	"xdswatch.delta":                    func(s *ManagementServer) { s.Delta = true },
	"xdswatch.resume_version":           func(s *ManagementServer) { s.Features.ResumeVersion = true },
	"xdswatch.explicit_wildcard":        func(s *ManagementServer) { s.Features.ExplicitWildcard = true },
}

// features reads server_features. What is not understood, of whatever type it is, has no
// effect but a notice (gRFC A30).
func (x field) features(s *ManagementServer) {
	for _, item := range x.items() {
		name, ok := item.val.(string)
		set := serverFeatures[name]
		switch {
		case set != nil:
			set(s)
		case ok:
			item.notice("%s is no feature that this client knows%s", shown(name), didYouMean(name, slices.Collect(maps.Keys(serverFeatures))))
		// BOOT-5: of whatever JSON type it is.
		case item.present():
			item.notice("is %s, and no feature that this client knows", kind(item.val))
		}
	}
}
