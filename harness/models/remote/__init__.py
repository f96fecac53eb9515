"""Models behind a server: which address and dialect a name means, what goes over the wire, what comes back."""
