"""The ACP agent over stdio: protocol version 1.

    stdio ──► jsonrpc ──► agent ──► SessionSource           requests
    stdio ◄── wire ◄── replay, push, follow ◄── turns       answers and updates

`server.serve` wires it together and is the only entrance. Nothing here knows a tool, and nothing is imported before it
is needed: an editor waits for `initialize`.
"""
