//! Plans and paces changes to Kubernetes `DaemonSet`s.
