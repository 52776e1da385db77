// Package control correlates and routes the control traffic of a session, in
// both directions: requests of the host (the program that spawned us) to the
// controllers that answer them, and our own requests to the host and its
// answers back to whoever asked.
//
// A [Dispatcher] has two lanes. Responses, cancels and interrupts are taken at
// once, by the goroutine that reads the input: [Dispatcher.Receive] never
// blocks. Everything else is queued. Requests that change the session's state
// run one after the other in order of arrival; questions and callbacks run
// concurrently, a bounded number of them.
//
// Each incoming request gets exactly one response, whatever happens. A request
// whose id is that of one still unanswered gets its response, an error, right
// after that one's: the host takes the first line with an id for the request it
// waits for, so that neither can be taken for the other.
//
// What requests do to the rest of the program goes through the small
// interfaces of [Effects]. One that is nil means that the program can't do
// this: it isn't advertised, and requests for it are errors.
package control
