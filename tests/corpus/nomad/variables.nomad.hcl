variable "image_tag" {
  type        = string
  default     = "2.1.0"
  description = "what to run"
}

variable "memory" {
  type    = number
  default = 600
  validation {
    condition     = var.memory >= 100
    error_message = "Too little."
  }
}

variable "cpu" {
  default = "450"
}

variable "replicas" { default = 2 }

job "api" {
  group "api" {
    count = var.replicas
    task "api" {
      driver = "docker"
      config {
        image = "registry.example/api:${var.image_tag}"
        args  = ["--memory=${var.memory}m"]
      }
      resources {
        cpu    = var.cpu
        memory = var.memory
      }
    }
  }
}
