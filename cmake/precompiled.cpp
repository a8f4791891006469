// Nothing: a target needs a source, and precompiled headers a target.
