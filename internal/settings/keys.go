package settings

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/agentcli/agent/internal/policy"
)

// Names of the keys, for the accessors of [Settings].
const (
	Model                  = "model"
	DefaultMode            = "permissions.defaultMode"
	Allow                  = "permissions.allow"
	Ask                    = "permissions.ask"
	Deny                   = "permissions.deny"
	Import                 = "permissions.import"
	ToolsAllowed           = "tools.allowed"
	ToolsDisallowed        = "tools.disallowed"
	ShellTimeoutMs         = "tools.shell.timeoutMs"
	ShellMaxOutputChars    = "tools.shell.maxOutputChars"
	WebAllowedPrivateHosts = "tools.webFetch.allowedPrivateHosts"
	AdditionalDirectories  = "additionalDirectories"
	MaxTurns               = "maxTurns"
	MaxFrameBytes          = "maxFrameBytes"
	Proxy                  = "network.proxy"
	NoProxy                = "network.noProxy"
	CAFile                 = "network.caFile"
	IdleTimeoutMs          = "network.idleTimeoutMs"
	RetryBudgetMs          = "network.retryBudgetMs"
	CatalogFile            = "catalogFile"
	MCPServers             = "mcpServers"

	providerBaseURL   = "providers.<name>.baseURL"
	providerAPIKeyEnv = "providers.<name>.apiKeyEnv"
	providerHeaders   = "providers.<name>.headers"
)

// Type is the type of a key's value.
type Type uint8

// Types of values, with the Go type that holds them.
const (
	String     Type = iota // string
	Int                    // int, within Min and Max
	StringList             // []string
	StringMap              // map[string]string
	ObjectMap              // map[string]json.RawMessage, each an object
)

// String names the type as an error message does.
func (t Type) String() string {
	return [...]string{"a string", "a whole number", "a list of strings", "an object with string values", "an object with objects as values"}[t]
}

// Key describes one setting. The table of keys is all there is to know about
// them: parsing, writing, the JSON Schema and the reference in the manual
// follow it.
type Key struct {
	// Name is the path to the value, joined by dots. <name> stands for any
	// one step.
	Name string
	Type Type
	// Default holds a string or an int; nil means that there is none.
	Default any
	// Enum lists the values of a String that may have no others, or those of
	// the strings of a StringList.
	Enum     []string
	Min, Max int // of an Int
	// Restricted keys are read from the user's file, flags and managed
	// settings only: in a project's files, which may come from a stranger,
	// they are ignored with a warning.
	Restricted bool
	// Path values expand ~/ and are relative to the directory of the file that
	// holds them (from flags: as given).
	Path bool
	// Secret values are not shown by lists.
	Secret bool
	// Description says what the setting does, in a sentence or two.
	Description string

	// normal returns the canonical form of a string (each string of a list or
	// map), or says what it must be.
	normal func(string) (string, error)
	// rules is what the rules do that the list holds; "" if it holds none.
	rules policy.Behavior
	// entry checks the name of a map's entry; nil takes any.
	entry func(string) error
	// inProject says why a value can't come from a project's file; "" if it
	// can.
	inProject func(string) string
}

// Union reports whether the values of all layers count together, the lowest
// layer's first. Those of other keys replace the lower layers' value (for
// maps: entry by entry).
func (k *Key) Union() bool { return k.Type == StringList }

// Scopes names the layers that the key is read from.
func (k *Key) Scopes() []string {
	if k.Restricted {
		return []string{User.String(), Flags.String(), Managed.String()}
	}
	return []string{User.String(), Project.String(), Local.String(), Flags.String(), Managed.String()}
}

// Keys returns the table of all keys, in the order of the manual. It is made
// anew by each call.
func Keys() []Key {
	return slices.Concat(modelKeys(), permissionKeys(), toolKeys(), limitKeys(), networkKeys())
}

func modelKeys() []Key {
	return []Key{
		{Name: Model, Type: String, inProject: noScript,
			Description: "The model to use, as `provider/model` or by its name alone. Without it the provider is chosen by the API keys in the environment."},
		{Name: providerBaseURL, Type: String, Restricted: true, normal: httpURL,
			Description: "Where the provider's API is, instead of its public address. `<name>` is the provider's name before the slash of `provider/model`."},
		{Name: providerAPIKeyEnv, Type: String, Restricted: true, normal: envName,
			Description: "The environment variable that holds the provider's API key, instead of its usual one. Keys themselves don't belong in settings."},
		{Name: providerHeaders, Type: StringMap, Restricted: true, Secret: true, normal: headerValue, entry: headerName,
			Description: "HTTP headers sent with each request to the provider, besides its own."},
		{Name: CatalogFile, Type: String, Restricted: true, Path: true,
			Description: "A JSON file of models with their windows, limits and prices, which adds to the built-in catalogue and wins over it."},
	}
}

func permissionKeys() []Key {
	modes := make([]string, len(policy.Modes))
	for i, m := range policy.Modes {
		modes[i] = string(m)
	}
	return []Key{
		{Name: DefaultMode, Type: String, Default: string(policy.ModeDefault), Enum: modes, Restricted: true, normal: mode,
			Description: "How much runs without asking when a session starts: `--permission-mode` for every run."},
		{Name: Allow, Type: StringList, Restricted: true, normal: nonEmpty, rules: policy.Allow,
			Description: "Rules for calls that run without asking, each `Tool` or `Tool(specifier)`: see docs/permissions.md. In a project's files only those count that you yourself allowed there for good."},
		{Name: Ask, Type: StringList, normal: nonEmpty, rules: policy.Ask,
			Description: "Rules for calls that ask first in every mode, each `Tool` or `Tool(specifier)`: see docs/permissions.md."},
		{Name: Deny, Type: StringList, normal: nonEmpty, rules: policy.Deny,
			Description: "Rules for calls that never run, in any mode, each `Tool` or `Tool(specifier)`: see docs/permissions.md."},
		{Name: Import, Type: StringList, Restricted: true, Enum: otherTools(), normal: otherTool,
			Description: "Other tools whose allow rules in your home directory count here too. What they deny or ask counts always."},
		{Name: AdditionalDirectories, Type: StringList, Restricted: true, Path: true, normal: nonEmpty,
			Description: "Directories that the tools may work in besides the current one: `--add-dir` for every run."},
	}
}

func toolKeys() []Key {
	return []Key{
		{Name: MCPServers, Type: ObjectMap, Restricted: true, Secret: true, entry: serverName,
			Description: "MCP servers by name, each as in `--mcp-config`: `command`, `args` and `env` of a program, or a `url`. See docs/mcp.md."},
		{Name: ToolsAllowed, Type: StringList, Restricted: true, normal: nonEmpty, rules: policy.Allow,
			Description: "Like `permissions.allow`, under the name of `--allowed-tools`."},
		{Name: ToolsDisallowed, Type: StringList, normal: nonEmpty, rules: policy.Deny,
			Description: "Like `permissions.deny`, under the name of `--disallowed-tools`."},
		{Name: ShellTimeoutMs, Type: Int, Default: 120_000, Min: 1, Max: 600_000,
			Description: "Milliseconds after which a shell command is stopped, unless the call asks for another time."},
		{Name: ShellMaxOutputChars, Type: Int, Default: 30_000, Min: 1_000, Max: 1_000_000,
			Description: "Characters of a command's output given to the model: its beginning and its end. The whole stays in a file."},
		{Name: WebAllowedPrivateHosts, Type: StringList, Restricted: true, normal: hostName,
			Description: "Hosts that web_fetch may reach at private and loopback addresses, as `host` or `host:port`, for example `localhost:3000`."},
	}
}

func limitKeys() []Key {
	return []Key{
		{Name: MaxTurns, Type: Int, Min: 1, Max: 1_000_000,
			Description: "Model requests in one turn, after which it ends with an error. No limit without it."},
		{Name: MaxFrameBytes, Type: Int, Default: 900_000, Min: 64_000, Max: 64 << 20, Restricted: true,
			Description: "Bytes of one line of stream-json output, above which tool results are moved to a file with a preview in their place."},
	}
}

func networkKeys() []Key {
	return []Key{
		{Name: Proxy, Type: String, Restricted: true, Secret: true,
			Description: "The proxy for all traffic: an http, https, socks5 or socks5h URL, user:password@ allowed, or host:port. `direct` means none. Without it HTTP_PROXY, HTTPS_PROXY and ALL_PROXY count."},
		{Name: NoProxy, Type: String, Restricted: true,
			Description: "Hosts reached without the proxy, as in NO_PROXY: names (with their subdomains), addresses, CIDR ranges, `*`, each with an optional port."},
		{Name: CAFile, Type: String, Restricted: true, Path: true,
			Description: "A PEM file of certificates trusted besides the system's, for example of a company's proxy."},
		{Name: IdleTimeoutMs, Type: Int, Default: 60_000, Min: 100, Max: 3_600_000,
			Description: "Milliseconds without a sign of life after which a model's stream is cut and the request tried again."},
		{Name: RetryBudgetMs, Type: Int, Default: 300_000, Min: 1, Max: 86_400_000,
			Description: "Milliseconds, from the first failure of a model request, in which it may be tried again."},
	}
}

func noScript(model string) string {
	if strings.HasPrefix(model, "scripted/") {
		return "a project can't name a script as the model"
	}
	return ""
}

func mode(s string) (string, error) {
	m, err := policy.ParseMode(s)
	return string(m), err
}

func nonEmpty(s string) (string, error) {
	if strings.TrimSpace(s) == "" {
		return "", errors.New("an empty entry means nothing here")
	}
	return s, nil
}

func otherTool(s string) (string, error) {
	if !slices.Contains(otherTools(), s) {
		return "", errors.New("no such tool")
	}
	return s, nil
}

func httpURL(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
		return "", errors.New("an http:// or https:// URL is needed")
	}
	if u.User != nil {
		return "", errors.New("a user or password in the URL is not used; put credentials in headers")
	}
	return s, nil
}

func envName(s string) (string, error) {
	for i, r := range s {
		letter := r == '_' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return "", errors.New("the name of an environment variable is needed, not a key itself")
		}
	}
	if s == "" {
		return "", errors.New("the name of an environment variable is needed")
	}
	return s, nil
}

func headerName(s string) error {
	for _, r := range s {
		if r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\\"/[]?={}`, r) {
			return fmt.Errorf("%q is no name of a header", s)
		}
	}
	if s == "" {
		return errors.New("a header needs a name")
	}
	return nil
}

func headerValue(s string) (string, error) {
	for _, r := range s {
		if r < ' ' && r != '\t' || r == 0x7f {
			return "", errors.New("a header can't hold control characters")
		}
	}
	return s, nil
}

func hostName(s string) (string, error) {
	if s == "" || strings.ContainsAny(s, "/@?# \t\r\n") {
		return "", errors.New("a host or host:port is needed, without scheme and path")
	}
	return strings.ToLower(s), nil
}

// matchKey finds the key that path leads to, or tells that it is the way to
// one (an object that may hold keys).
func matchKey(table []Key, path []string) (key *Key, isPrefix bool) {
	for i := range table {
		switch n := steps(table[i].Name, path); {
		case n < 0:
		case n == 0:
			return &table[i], false
		default:
			isPrefix = true
		}
	}
	return nil, isPrefix
}

// steps returns how many steps are missing from path to name; -1 when path
// leads elsewhere.
func steps(name string, path []string) int {
	for _, step := range path {
		if name == "" {
			return -1
		}
		var head string
		head, name, _ = strings.Cut(name, ".")
		if head != step && (head != "<name>" || !isName(step)) {
			return -1
		}
	}
	if name == "" {
		return 0
	}
	return 1 + strings.Count(name, ".")
}

// isName reports whether s can stand for <name>.
func isName(s string) bool {
	for _, r := range s {
		if r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return false
		}
	}
	return s != ""
}

func serverName(s string) error {
	if strings.TrimSpace(s) == "" {
		return errors.New("a server needs a name")
	}
	return nil
}
