package report

// Names of the events of a resolved view.
const (
	EventConfig  = "config"
	EventWaiting = "waiting"
	EventRemoved = "removed"
)

// Config is a resolved configuration.
type Config struct {
	Head
	ConfigValue
}

// ConfigValue is a configuration below a root. No map or list in it is nil.
type ConfigValue struct {
	Listener     *Named             `json:"listener"` // nil if the root is none
	RouteConfigs []RouteConfig      `json:"route_configs"`
	VirtualHosts []VirtualHost      `json:"virtual_hosts"`
	Clusters     map[string]Cluster `json:"clusters"`
	Complete     bool               `json:"complete"` // nothing is waited for
}

// Bad says whether a part of the configuration is in error.
func (c *ConfigValue) Bad() bool {
	for _, rc := range c.RouteConfigs {
		if rc.Error != nil {
			return true
		}
	}
	for _, cl := range c.Clusters {
		if cl.Error != nil {
			return true
		}
	}
	return false
}

// Named is a resource by its name.
type Named struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// RouteConfig is a route configuration.
type RouteConfig struct {
	Named
	Inline  bool   `json:"inline"`
	Deleted bool   `json:"deleted"` // only references keep it
	Error   *Error `json:"error"`   // why there is none
}

// VirtualHost is one that belongs to the configuration.
type VirtualHost struct {
	Name        string   `json:"name"`
	Domains     []string `json:"domains"`
	RouteConfig string   `json:"route_config"`
}

// Cluster is an entry of the clusters.
type Cluster struct {
	Status           string     `json:"status"` // "ok", "error" or "waiting"
	Error            *Error     `json:"error"`
	Note             string     `json:"note"` // what is wrong though the cluster can be used
	Deleted          bool       `json:"deleted"`
	EndpointsDeleted bool       `json:"endpoints_deleted"`
	Version          string     `json:"version"`
	Kind             string     `json:"kind"`
	Leaves           []string   `json:"leaves"` // of an aggregate
	Endpoints        []Locality `json:"endpoints"`
	ReferencedBy     []string   `json:"referenced_by"`
}

// Locality is the endpoints of a locality, as the server sent them.
type Locality struct {
	Priority  uint32     `json:"priority"`
	Locality  Place      `json:"locality"`
	Weight    uint32     `json:"weight"` // 0 if it was not sent
	Endpoints []Endpoint `json:"endpoints"`
}

// Place is the name of a locality.
type Place struct {
	Region  string `json:"region"`
	Zone    string `json:"zone"`
	SubZone string `json:"sub_zone"`
}

// Endpoint is one endpoint, as the server sent it.
type Endpoint struct {
	Address  string `json:"address"`
	Weight   uint32 `json:"weight"` // 0 if it was not sent
	Health   string `json:"health"`
	Hostname string `json:"hostname"`
}

// Waiting is what holds back the next value.
type Waiting struct {
	Head
	For []Wait `json:"for"` // never nil
}

// Wait is a resource that is waited for.
type Wait struct {
	Type     string `json:"type"`
	Name     string `json:"name"`
	Since    Time   `json:"since"`
	Reason   string `json:"reason"`
	Blocking bool   `json:"blocking"`
}

// RootError is an error of a root, which replaces its value.
type RootError struct {
	Head
	Listener string `json:"listener,omitempty"` // whose error it is, where there are several
	Error    *Error `json:"error"`
}

// Removed is a listener that went.
type Removed struct {
	Head
	Listener string `json:"listener"`
}

// ViewDump is the state of a view.
type ViewDump struct {
	Head
	Config  *ConfigValue `json:"config"` // nil if there is none
	Error   *Error       `json:"error"`  // of the root
	Waiting []Wait       `json:"waiting"`
	Watched []Watched    `json:"watched"`
}

// Watched is a resource that a view watches.
type Watched struct {
	Type       string `json:"type"`
	Name       string `json:"name"`
	References int    `json:"references"`
}
