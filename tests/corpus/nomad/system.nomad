job "exporter" {
  type = "system"
  group "g" {
    task "node" {
      driver = "docker"
      config { image = "prom/node-exporter:v1" }
      resources {
        cpu    = 50
        memory = 40
      }
    }
  }
}
