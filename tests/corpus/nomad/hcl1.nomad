"job" "legacy" {
  "datacenters" = ["dc1"]
  "type" = "service"
  "group" "cache" {
    "count" = "2"
    "task" "redis" {
      "driver" = "docker"
      "config" {
        "image" = "redis:3.2"
        "port_map" {
          "db" = 6379
        }
        "args" = ["--appendonly", "yes"]
      }
      "env" {
        "A.B" = "1"
      }
      "resources" {
        "cpu" = "500"
        "memory" = "256"
        "network" {
          "mbits" = 10
          "port" "db" {}
        }
      }
    }
  }
}
