variable "regions" {
  type    = map(number)
  default = { east = 512, west = 1024 }
}
job "regional" {
  dynamic "group" {
    for_each = var.regions
    labels   = ["cache-${group.key}"]
    content {
      task "redis" {
        driver = "docker"
        config { image = "redis:7" }
        resources {
          cpu    = 200
          memory = group.value
        }
      }
    }
  }
}
