// Package scripted plays model scripts: texts, thinking, tool calls, usage,
// delays and faults that are written in a file instead of being made by a
// model. The same script plays in process as a [model.Provider] ([New]) and
// over HTTP in the streaming formats of the Gemini, OpenAI chat completions and
// Anthropic Messages APIs ([Handler], [Serve], [Run]). [Record] is the way back:
// it writes what a real provider streamed as a script.
//
// The format is described in docs/model-scripts.md. The package is a leaf below
// model: it knows the vendors' wire formats, but none of their SDKs.
package scripted
