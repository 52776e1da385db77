package mcp

import (
	"encoding/json"
)

// Status is what there is to know of one server.
type Status struct {
	Name         string
	State        State
	Type         string // one of the Type constants; empty: the configuration is invalid
	Error        string
	Notes        []string // what its configuration asks for and doesn't get
	Scope        string
	Description  string
	Info         *ServerInfo // nil until it has connected
	Instructions string      // what the server wants the model to know; untrusted
	Tools        []ToolInfo  // those that the model can have, while connected
	Config       json.RawMessage
	Trusted      bool
}

// ServerInfo is what a server says of itself.
type ServerInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// ToolInfo is one tool of a server.
type ToolInfo struct {
	Name        string // the server's own
	FullName    string // as the model calls it
	Description string
	Annotations map[string]any // under the protocol's names; nil: none
}

// Status returns the state of all servers, in the order in which they came.
func (m *Manager) Status() []Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]Status, 0, len(m.order))
	names := map[string]bool{}
	for _, name := range m.order {
		list = append(list, m.servers[name].status(names))
	}
	return list
}

// status is called with m.mu held; names are those of tools before.
func (s *server) status(names map[string]bool) Status {
	st := Status{
		Name: s.cfg.Name, State: s.state, Type: s.cfg.Type, Error: s.err, Notes: s.cfg.Notes, Scope: s.scope,
		Description: s.cfg.Description, Instructions: s.instructions, Config: s.cfg.Public(), Trusted: s.trusted(),
	}
	if s.bad != nil {
		st.Config = nil
	}
	if s.info != nil {
		st.Info = &ServerInfo{s.info.Name, s.info.Version}
	}
	for _, t := range s.offered(names) {
		st.Tools = append(st.Tools, ToolInfo{t.remote, t.spec.Name, t.spec.Description, t.spec.Annotations})
	}
	return st
}
