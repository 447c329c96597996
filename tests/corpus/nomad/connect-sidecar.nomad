job "meshed" {
  group "api" {
    service {
      name = "api"
      port = "9001"
      connect {
        sidecar_service {}
        sidecar_task {
          resources {
            cpu    = 20
            memory = 48
          }
        }
      }
    }
    task "web" {
      driver = "docker"
      config { image = "registry.example/api:1" }
      resources {
        cpu    = 700
        memory = 350
      }
    }
  }
}
