"""The pure heart: values in, values out.

Nothing here knows kazoo, a clock, a thread, a log or chance. What happens comes
in as events, what to do goes out as effects, and every rule can be tried without
a network: by a table, by a story, by exhaustive search.
"""
