//! Tests on a real Kubernetes control plane.
