package tools

import "github.com/agentcli/agent/internal/policy"

// Disk lets policy see where paths really lead, as the tools themselves see
// it. Safe for concurrent use.
type Disk struct{}

// Resolve implements policy.Paths. A path that can't be followed to its end
// (too many links, no permission to read one) can't be told.
func (Disk) Resolve(path string) policy.Path {
	real, info, err := followLinks(path)
	if err != nil {
		return policy.Path{}
	}
	return policy.Path{Real: real, Exists: info != nil}
}
