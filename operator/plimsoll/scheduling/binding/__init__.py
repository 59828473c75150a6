"""Binds a pod after the decision: Reserve, Permit, PreBind, Bind, PostBind."""
