// Package mcp connects to MCP servers: programs that speak over their stdin and
// stdout, servers behind SSE, streamable HTTP or plain TCP, and servers inside
// the host that are reached through a [Tunnel]. A [Manager] owns them: it
// connects them at once and side by side, keeps their tools up to date, starts
// again what died, and takes everything down. No type of the MCP SDK leaves
// this package.
package mcp
