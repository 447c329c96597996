job "gateway" {
  group "mesh" {
    network { mode = "bridge" }
    service {
      name = "gw"
      connect {
        gateway {
          mesh {}
        }
      }
    }
  }
}
